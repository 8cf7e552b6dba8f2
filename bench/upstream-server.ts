// A model server that does nothing but return the bytes of a short reply, streamed where that is asked for.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { DEFAULT_REPLY } from "../test/support/fake-upstreams/fake-upstream.ts";
import { openaiJsonWire, openaiWire } from "../test/support/fake-upstreams/wire.ts";

const reply = { ...DEFAULT_REPLY, pieces: ["Hello, ", "world", "."] };
const streamed = {
  type: openaiWire.contentType,
  body: openaiWire.begin(reply) + reply.pieces.map(openaiWire.piece).join("") + openaiWire.end(reply),
};
const whole = { type: openaiJsonWire.contentType, body: openaiJsonWire.end(reply) };
const server = createServer((request, response) => {
  const chunks: Buffer[] = [];
  request.on("data", (chunk: Buffer) => chunks.push(chunk));
  request.on("end", () => {
    const { type, body } = Buffer.concat(chunks).includes('"stream":true') ? streamed : whole;
    response.writeHead(200, { "content-type": type, "content-length": Buffer.byteLength(body) });
    response.end(body);
  });
});
server.keepAliveTimeout = 60_000;
server.listen(0, "127.0.0.1", () => {
  console.log(`ready on http://127.0.0.1:${(server.address() as AddressInfo).port}`);
});
process.on("SIGTERM", () => process.exit(0));
