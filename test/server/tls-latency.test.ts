import type { ServerResponse } from "node:http";
import { connect } from "node:http2";
import { setImmediate } from "node:timers/promises";
import { expect, test } from "vitest";
import { createCertificate } from "../support/certificate.ts";
import { started } from "../support/started.ts";
import { listen } from "./listen.ts";

const PIECE = "x".repeat(50);
const CONNECTIONS = 10;
/** They take a few milliseconds. Linux delays an acknowledgement by at least 40 ms. */
const TURNS = 500;

const { cert, key } = createCertificate();
let onCall: (response: ServerResponse) => void;
const pair = { cert: Buffer.from(cert), key: Buffer.from(key) };
const server = started(() => listen((_request, response) => onCall(response as ServerResponse), {}, { tls: pair }));

/** Whether the caller has all pieces shortly after they were sent. */
async function arrivesAtOnce(): Promise<boolean> {
  const accepted = new Promise<ServerResponse>((resolve) => {
    onCall = resolve;
  });
  const session = connect(`https://127.0.0.1:${server.port}`, { ca: cert, servername: "localhost" });
  let received = 0;
  session.request({ ":path": "/" }).on("data", (piece: Buffer) => {
    received += piece.length;
  });
  const response = await accepted;
  // The second piece is sent before the first is acknowledged.
  for (let piece = 0; piece < 2; piece++) {
    response.write(PIECE);
    await setImmediate();
  }
  for (let turn = 0; turn < TURNS && received < 2 * PIECE.length; turn++) await setImmediate();
  response.end();
  session.destroy();
  return received === 2 * PIECE.length;
}

test("the pieces of an HTTP/2 response do not wait for acknowledgements of the caller", async () => {
  let late = 0;
  for (let i = 0; i < CONNECTIONS; i++) if (!(await arrivesAtOnce())) late++;
  // With other load on the machine, single packets may be late.
  expect(late).toBeLessThan(CONNECTIONS / 2);
});
