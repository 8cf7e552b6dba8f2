import type { ServerResponse } from "node:http";
import { connect } from "node:http2";
import { setImmediate } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { badRequestResponses } from "../../src/server/http/bad-request.ts";
import { Listener } from "../../src/server/http/listener.ts";
import { createCertificate } from "../support/certificate.ts";

const PIECE = "x".repeat(50);
const CONNECTIONS = 10;
/** They take a few milliseconds. Linux delays an acknowledgement by at least 40 ms. */
const TURNS = 500;

const { cert, key } = createCertificate();
let onCall: (response: ServerResponse) => void;
let listener: Listener;
let port: number;

beforeAll(async () => {
  listener = new Listener({
    host: "127.0.0.1",
    port: 0,
    tls: { cert: Buffer.from(cert), key: Buffer.from(key) },
    handler: (_request, response) => onCall(response as ServerResponse),
    refusals: badRequestResponses(() => "req_test"),
  });
  ({ port } = await listener.open());
});
afterAll(() => listener.close(0));

/** Whether the caller has all pieces shortly after they were sent. */
async function arrivesAtOnce(): Promise<boolean> {
  const accepted = new Promise<ServerResponse>((resolve) => {
    onCall = resolve;
  });
  const session = connect(`https://127.0.0.1:${port}`, { ca: cert, servername: "localhost" });
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
