import { describe, expect, test } from "vitest";
import { post } from "../support/any-json.ts";
import { useTestApp } from "../support/app.ts";
import { SMALL, usePaidKey } from "../support/openai.ts";

let calls = 0;

const app = useTestApp();
const key = usePaidKey(app);

async function send(path: string, body: object, idempotencyKey: string) {
  const { status, text } = await post(app, key, path, body, { "idempotency-key": idempotencyKey });
  const [id] = /"(gen|resp|msg)_[0-9a-z]+"/.exec(text) ?? [];
  return { status, id };
}

const messages = [{ role: "user", content: "Hello" }];
const texts = { model: SMALL, messages, max_tokens: 10 };
const cached = [{ type: "text", text: "Hello", cache_control: { type: "ephemeral" } }];

/** Fields that change no reply of an upstream, but the response or what the upstream is asked for. */
const OTHERS: [path: string, request: object, other: object][] = [
  ["/v1/responses", { model: SMALL, input: "Hello" }, { metadata: { a: "1" } }],
  ["/v1/responses", { model: SMALL, input: "Hello", metadata: { a: "1" } }, { metadata: { a: "2" } }],
  ["/v1/responses", { model: SMALL, input: "Hello" }, { include: ["reasoning.encrypted_content"] }],
  ["/v1/responses", { model: SMALL, input: "Hello" }, { reasoning: { summary: "auto" } }],
  ["/v1/chat/completions", { ...texts, stream: true }, { stream_options: { include_usage: true } }],
  ["/v1/chat/completions", texts, { stream: true }],
  ["/v1/chat/completions", texts, { user: "ada" }],
  ["/v1/chat/completions", texts, { unknown_field: 1 }],
  ["/v1/messages", texts, { messages: [{ role: "user", content: cached }] }],
  ["/v1/embeddings", { model: "vx-sandbox-embed", input: "Hello" }, { encoding_format: "base64" }],
  ["/v1/generate", texts, { messages: [{ role: "user", parts: [{ text: "Hello" }] }] }],
];

describe("another request with the same idempotency key is refused:", () => {
  test.each(OTHERS)("%s %j with %j", async (path, request, other) => {
    const idempotencyKey = `payload-${calls++}`;
    const first = await send(path, request, idempotencyKey);
    expect(first).toEqual({ status: 200, id: expect.any(String) });
    expect(await send(path, { ...request, ...other }, idempotencyKey)).toMatchObject({ status: 422 });
    expect(await send(path, request, idempotencyKey)).toEqual(first);
  });
});

test("the order of JSON members and members that are null change no request", async () => {
  const schema = { type: "object", properties: { a: { type: "string" }, b: { type: "string" } } };
  const reversed = { properties: { b: { type: "string" }, a: { type: "string" } }, type: "object" };
  const tool = (parameters: object) => [{ type: "function", function: { name: "f", parameters } }];
  const first = await send("/v1/chat/completions", { ...texts, tools: tool(schema) }, "order");
  const { model, ...rest } = texts;
  const second = await send("/v1/chat/completions", { seed: null, tools: tool(reversed), ...rest, model }, "order");
  expect(second).toEqual(first);
});
