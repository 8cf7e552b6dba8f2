// A node:http server that parses the body it gets and answers JSON of a given size; nothing else.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

/** The answer without what fills it up to the size: its text repeats what was asked. */
const sample = JSON.parse(process.env.ANSWER ?? "{}") as object;
const server = createServer((request, response) => {
  const chunks: Buffer[] = [];
  request.on("data", (chunk: Buffer) => chunks.push(chunk));
  request.on("end", () => {
    const { model } = JSON.parse(Buffer.concat(chunks).toString()) as { model: string };
    const body = JSON.stringify({ ...sample, model });
    response.writeHead(200, {
      "content-type": "application/json",
      "content-length": Buffer.byteLength(body),
    });
    response.end(body);
  });
});
// Between two rounds the connections stay idle for longer than the five seconds of the default.
server.keepAliveTimeout = 60_000;
server.listen(0, "127.0.0.1", () => {
  console.log(`ready on http://127.0.0.1:${(server.address() as AddressInfo).port}`);
});
process.on("SIGTERM", () => process.exit(0));
