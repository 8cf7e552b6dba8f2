// Calls the server with the types that openapi-typescript generated from its document.
import createClient from "openapi-fetch";
import type { components, paths } from "./vx.ts";

declare const process: { readonly env: Readonly<Record<string, string>> };

const client = createClient<paths>({
  baseUrl: process.env.VX_URL ?? "",
  headers: { authorization: `Bearer ${process.env.VX_KEY}` },
});
// The fields that have a default are left out: the generated type must not require them.
const request: components["schemas"]["GenerateRequest"] = {
  model: "vx-sandbox-small",
  messages: [{ role: "user", content: "What is a ledger?" }],
};

const generated = await client.POST("/v1/generate", { body: request });
const chat = await client.POST("/v1/chat/completions", {
  body: { model: request.model, messages: [{ role: "user", content: "Hi" }], max_tokens: null, tools: [] },
});
const refused = await client.POST("/v1/generate", { body: { ...request, model: "none" } });
const ledger = await client.GET("/v1/ledger", { params: { query: { page_size: 1 } } });

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
