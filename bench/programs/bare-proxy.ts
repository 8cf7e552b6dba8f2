// A proxy that only forwards chat completions: no keys, limits, billing or rules. It shows the best that a
// proxy on node:http and undici can reach with the model server of the bench. Streams are passed on unread.
import { Pool } from "undici";
import { onBody, serveHttp } from "./serve.ts";

type ChatRequest = { readonly stream?: boolean };
type Chunk = { readonly choices: readonly { readonly delta?: { readonly content?: string } }[] };

const pool = new Pool(process.env.UPSTREAM ?? "", { connections: 64, pipelining: 1 });
serveHttp((request, response) => {
  onBody(request, (bytes) => {
    const chat = JSON.parse(bytes.toString()) as ChatRequest;
    const forward = async () => {
      const { body } = await pool.request({
        path: "/v1/chat/completions",
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ ...chat, model: "bench", stream: true }),
      });
      if (chat.stream) {
        response.writeHead(200, { "content-type": "text/event-stream" });
        body.pipe(response);
        return;
      }
      const message = { role: "assistant", content: contentOf(await body.text()) };
      const reply = JSON.stringify({ choices: [{ message }] });
      response.writeHead(200, { "content-type": "application/json", "content-length": Buffer.byteLength(reply) });
      response.end(reply);
    };
    // The request fails, and the bench with it.
    forward().catch(() => response.destroy());
  });
});

function contentOf(events: string): string {
  return events
    .split("\n")
    .filter((line) => line.startsWith("data: {"))
    .map((line) => (JSON.parse(line.slice("data: ".length)) as Chunk).choices[0]?.delta?.content ?? "")
    .join("");
}
