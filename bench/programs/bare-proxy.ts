// A proxy that only forwards chat completions: no keys, limits, billing or rules. It shows the best that a
// proxy on node:http and undici can reach with the model server of the bench.
import { Pool } from "undici";
import { onBody, serveHttp } from "./serve.ts";

type ChatRequest = { readonly messages: readonly unknown[]; readonly max_tokens: number };
type Chunk = { readonly choices: readonly { readonly delta?: { readonly content?: string } }[] };

const pool = new Pool(process.env.UPSTREAM ?? "", { connections: 64, pipelining: 1 });
serveHttp((request, response) => {
  onBody(request, (body) => {
    const send = (body: string) => {
      response.writeHead(200, {
        "content-type": "application/json",
        "content-length": Buffer.byteLength(body),
      });
      response.end(body);
    };
    // The request fails, and the bench with it.
    pass(body).then(send, () => response.destroy());
  });
});

async function pass(body: Buffer): Promise<string> {
  const { messages, max_tokens } = JSON.parse(body.toString()) as ChatRequest;
  const answer = await pool.request({
    path: "/v1/chat/completions",
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model: "bench", messages, max_tokens, stream: true }),
  });
  return JSON.stringify({
    choices: [{ message: { role: "assistant", content: contentOf(await answer.body.text()) } }],
  });
}

function contentOf(events: string): string {
  return events
    .split("\n")
    .filter((line) => line.startsWith("data: {"))
    .map((line) => (JSON.parse(line.slice("data: ".length)) as Chunk).choices[0]?.delta?.content ?? "")
    .join("");
}
