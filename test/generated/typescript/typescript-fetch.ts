// Calls the server with the client that the generator typescript-fetch of openapi-generator wrote.
import { ChatServiceApi, Configuration, GenerateServiceApi, LedgerServiceApi, ResponseError } from "./typescript-fetch/index.ts";

declare const process: { readonly env: Readonly<Record<string, string>> };

const configuration = new Configuration({ basePath: process.env.VX_URL ?? "", accessToken: process.env.VX_KEY ?? "" });
const api = new GenerateServiceApi(configuration);
const request = { model: "vx-sandbox-small", messages: [{ role: "user" as const, content: "What is a ledger?" }] };

const generated = await api.generate({ generateRequest: request });
const chat = await new ChatServiceApi(configuration).createChatCompletion({
  createChatCompletionRequest: { model: request.model, messages: [{ role: "user", content: "Hi" }] },
});
const refused = await api.generate({ generateRequest: { ...request, model: "none" } }).catch(codeOf);
const ledger = await new LedgerServiceApi(configuration).listEntries({ pageSize: 1 });

console.log(
  JSON.stringify({
    generated: generated.message?.content,
    chat: chat.choices[0]?.message?.content,
    refused,
    ledger: ledger.entries[0]?.kind,
  }),
);

async function codeOf(error: unknown): Promise<string> {
  if (!(error instanceof ResponseError)) throw error;
  return (await error.response.json()).error.code;
}
