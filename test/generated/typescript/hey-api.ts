// Calls the server with the client that @hey-api/openapi-ts generated from its document.
import { client } from "./hey-api/client.gen.ts";
import { createChatCompletion, generate, listEntries } from "./hey-api/index.ts";

declare const process: { readonly env: Readonly<Record<string, string>> };

client.setConfig({ baseUrl: process.env.VX_URL ?? "", auth: process.env.VX_KEY ?? "" });
const request = { model: "vx-sandbox-small", messages: [{ role: "user" as const, content: "What is a ledger?" }] };

const generated = await generate({ body: request });
const chat = await createChatCompletion({ body: { model: request.model, messages: [{ role: "user", content: "Hi" }] } });
const refused = await generate({ body: { ...request, model: "none" } });
const ledger = await listEntries({ query: { page_size: 1 } });

console.log(
  JSON.stringify({
    generated: whole(generated.data)?.message?.content,
    chat: whole(chat.data)?.choices[0]?.message?.content,
    refused: refused.error?.error.code,
    ledger: ledger.data?.entries[0]?.kind,
  }),
);

/** The type of a response that can be streamed includes the text of a stream. */
function whole<Result extends object>(data: Result | string | undefined): Result | undefined {
  return typeof data === "object" ? data : undefined;
}
