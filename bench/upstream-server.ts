// A model server that does nothing but return the bytes of a short streamed reply.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { DEFAULT_REPLY } from "../test/support/fake-upstreams/fake-upstream.ts";
import { openaiWire } from "../test/support/fake-upstreams/wire.ts";

const reply = { ...DEFAULT_REPLY, pieces: ["Hello, ", "world", "."] };
const body = openaiWire.begin(reply) + reply.pieces.map(openaiWire.piece).join("") + openaiWire.end(reply);
const server = createServer((request, response) => {
  request.resume();
  response.writeHead(200, { "content-type": openaiWire.contentType });
  response.end(body);
});
server.keepAliveTimeout = 60_000;
server.listen(0, "127.0.0.1", () => {
  console.log(`ready on http://127.0.0.1:${(server.address() as AddressInfo).port}`);
});
process.on("SIGTERM", () => process.exit(0));
