import type { ServerResponse } from "node:http";
import { connect } from "node:http2";
import { afterAll, beforeAll, expect, test } from "vitest";
import { badRequestResponses } from "../../src/server/errors/bad-request.ts";
import { Listener } from "../../src/server/listener.ts";
import { createCertificate } from "../support/certificate.ts";

const PIECES = 40;
const PIECE_MS = 5;

const { cert, key } = createCertificate();
let listener: Listener;
let port: number;

beforeAll(async () => {
  listener = new Listener({
    host: "127.0.0.1",
    port: 0,
    tls: { cert: Buffer.from(cert), key: Buffer.from(key) },
    // Sends a piece every few milliseconds.
    handler: (_request, response) => {
      let sent = 0;
      const timer = setInterval(() => {
        (response as ServerResponse).write("x".repeat(50));
        if (++sent < PIECES) return;
        clearInterval(timer);
        response.end();
      }, PIECE_MS);
    },
    refusals: badRequestResponses(() => "req_test"),
  });
  ({ port } = await listener.open());
});
afterAll(() => listener.close(0));

async function longestGapMs(): Promise<number> {
  const session = connect(`https://127.0.0.1:${port}`, { ca: cert, servername: "localhost" });
  let longest = 0;
  let last: number | undefined;
  for await (const _piece of session.request({ ":path": "/" })) {
    const now = performance.now();
    longest = Math.max(longest, now - (last ?? now));
    last = now;
  }
  session.destroy();
  return longest;
}

test("the pieces of an HTTP/2 response do not wait for acknowledgements of the caller", async () => {
  const gaps: number[] = [];
  for (let round = 0; round < 5; round++) gaps.push(await longestGapMs());
  // Linux delays an acknowledgement by at least 40 ms.
  expect(Math.min(...gaps)).toBeLessThan(35);
});
