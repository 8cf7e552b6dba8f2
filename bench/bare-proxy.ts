// A proxy that does nothing but pass a chat completion on: no keys, no limits, no money, no rules. What a proxy on
// node:http and undici can reach at best before the model server of the bench.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { Pool } from "undici";

type Ask = { readonly messages: readonly unknown[]; readonly max_tokens: number };
type Chunk = { readonly choices: readonly { readonly delta?: { readonly content?: string } }[] };

const pool = new Pool(process.env.UPSTREAM ?? "", { connections: 64, pipelining: 1 });
const server = createServer((request, response) => {
  const chunks: Buffer[] = [];
  request.on("data", (chunk: Buffer) => chunks.push(chunk));
  request.on("end", async () => {
    const { messages, max_tokens } = JSON.parse(Buffer.concat(chunks).toString()) as Ask;
    const answer = await pool.request({
      path: "/v1/chat/completions",
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ model: "bench", messages, max_tokens, stream: true }),
    });
    const body = JSON.stringify({
      choices: [{ message: { role: "assistant", content: contentOf(await answer.body.text()) } }],
    });
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

function contentOf(events: string): string {
  return events
    .split("\n")
    .filter((line) => line.startsWith("data: {"))
    .map((line) => (JSON.parse(line.slice("data: ".length)) as Chunk).choices[0]?.delta?.content ?? "")
    .join("");
}
