// Calls the server with the client that orval generated from its document.
import { createChatCompletion, generate, listEntries } from "./orval/vx.ts";

declare const process: { readonly env: Readonly<Record<string, string>> };

const options = { headers: { authorization: `Bearer ${process.env.VX_KEY}` } };
const request = { model: "vx-sandbox-small", messages: [{ role: "user" as const, content: "What is a ledger?" }] };

const generated = await generate(request, options);
const chat = await createChatCompletion({ model: request.model, messages: [{ role: "user", content: "Hi" }] }, options);
const refused = await generate({ ...request, model: "none" }, options);
const ledger = await listEntries({ page_size: 1 }, options);

console.log(
  JSON.stringify({
    generated: whole(generated.status === 200 && generated.data)?.message?.content,
    chat: whole(chat.status === 200 && chat.data)?.choices[0]?.message?.content,
    refused: refused.status === 404 && refused.data.error.code,
    ledger: ledger.status === 200 && ledger.data.entries[0]?.kind,
  }),
);

/** The type of a response that can be streamed includes the text of a stream. */
function whole<Result extends object>(data: Result | string | false): Result | undefined {
  return typeof data === "object" ? data : undefined;
}
