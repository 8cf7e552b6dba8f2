import OpenAI from "openai";
import { describe, expect, test, vi } from "vitest";
import { useTestApp } from "../support/app.ts";
import { createTestKey, operatorOf } from "../support/fixtures.ts";
import { withinOneMinute } from "../support/minute.ts";
import { chargesOf, createPaidKey, failureOf, openAi, SMALL, said, usePaidKey } from "../support/openai.ts";

const app = useTestApp();
const key = usePaidKey(app);

const READER = { scopes: ["read"] };
const LONG = [said("word ".repeat(9_000))];
const hello = { model: SMALL, messages: [said("Hello")] };

const ask = (payer: { secret: string }, body: object = {}) =>
  failureOf(openAi(app, payer).chat.completions.create({ ...hello, ...body }));
const revoked = async () => {
  const one = await createPaidKey(operatorOf(app));
  await operatorOf(app).revokeKey({ keyId: one.id });
  return one;
};

/** A client that may retry, and how often it has sent a request. */
function countingClient(payer: { secret: string }) {
  const sent: unknown[] = [];
  const counted: typeof fetch = (...args) => {
    sent.push(args);
    return fetch(...args);
  };
  return { sent, client: openAi(app, payer, { maxRetries: 2, fetch: counted }) };
}

const { AuthenticationError, PermissionDeniedError, NotFoundError, BadRequestError, RateLimitError, ConflictError } = OpenAI;

test.each<[string, new (...args: never[]) => Error, () => Promise<{ secret: string }>, object, object]>([
  ["invalid_api_key", AuthenticationError, async () => ({ secret: "vx_live_x" }), {}, { type: "authentication_error" }],
  ["revoked_api_key", AuthenticationError, revoked, {}, { status: 401 }],
  ["insufficient_scope", PermissionDeniedError, () => createTestKey(operatorOf(app), READER), {}, { type: "permission_error" }],
  ["model_not_found", NotFoundError, async () => key, { model: "gpt-4o" }, { param: "model" }],
  ["context_length_exceeded", BadRequestError, async () => key, { messages: LONG }, { param: "messages" }],
])("%s is a %o", async (code, type, payer, body, expected) => {
  const error = await ask(await payer(), body);
  expect(error).toBeInstanceOf(type);
  expect(error).toMatchObject({ code, ...expected });
});

test("an empty balance is a 402 that is not retried, and nothing runs", async () => {
  const broke = await createTestKey(operatorOf(app));
  const { client, sent } = countingClient(broke);
  const error = await failureOf(client.chat.completions.create(hello));
  expect(sent).toHaveLength(1);
  expect(error).toMatchObject({ status: 402, code: "insufficient_balance", type: "billing_error" });
  expect(error.message).toMatch(/balance is \$0\.00/);
  expect(await chargesOf(operatorOf(app), broke)).toEqual([]);
});

test.each([false, true])(
  "the replay of an interrupted response is a conflict that is not retried, stream: %j",
  async (stream) => {
    const payer = await createPaidKey(operatorOf(app));
    const { client, sent } = countingClient(payer);
    const create = () => client.chat.completions.create({ ...hello, stream }, { headers: { "idempotency-key": "cut" } });
    await create();
    await vi.waitFor(async () => {
      const cut = await app.database.owner`
      UPDATE vx.answers SET answer = answer::jsonb || '{"content": "", "failure": "revoked_api_key"}'
      WHERE account_id = ${payer.accountId} AND answer IS NOT NULL RETURNING 1`;
      expect(cut).toHaveLength(1);
    });
    const error = await failureOf(create());
    expect(sent).toHaveLength(2);
    expect(error).toBeInstanceOf(ConflictError);
    expect(error).toMatchObject({ status: 409, code: "generation_interrupted" });
  },
);

test("a call above the limit is a RateLimitError with retry-after", async () => {
  await withinOneMinute(async () => {
    const limited = await createPaidKey(operatorOf(app), { rateLimitRpm: 1 });
    await openAi(app, limited).models.list();
    const error = await ask(limited);
    expect(error).toBeInstanceOf(RateLimitError);
    expect(error).toMatchObject({ status: 429, code: "rate_limit_exceeded", type: "rate_limit_error" });
    expect(Number(error.headers?.get("retry-after"))).toBeGreaterThanOrEqual(1);
    expect(Number(error.headers?.get("retry-after"))).toBeLessThanOrEqual(60);
  });
});

// chat-request-fields.test.ts has the fields that are refused whatever their value.
describe("an unsupported option is a BadRequestError with its name:", () => {
  const tool = { type: "function", function: { name: "f", parameters: {} } };
  const call = { id: "1", type: "function", function: { name: "f", arguments: "{}" } };
  const image = (url: string) => ({ type: "image_url", image_url: { url } });
  const user = (...content: object[]) => [{ role: "user", content }];
  test.each([
    ["top_p", { top_p: 1.1 }],
    ["top_p", { top_p: "1" }],
    ["frequency_penalty", { frequency_penalty: 2.1 }],
    ["presence_penalty", { presence_penalty: -2.1 }],
    ["seed", { seed: 1e300 }],
    ["tools", { tools: { tool } }],
    ["tools", { tools: Array(257).fill(tool) }],
    ["tools[1].type", { tools: [tool, { type: "web_search" }], tool_choice: "none" }],
    ["tools[0].function", { tools: [{ type: "function" }] }],
    ["tools[0].function.name", { tools: [{ type: "function", function: {} }] }],
    ["tools[0].function.parameters", { tools: [{ type: "function", function: { name: "f", parameters: [] } }] }],
    ["tools[0].function.strict", { tools: [{ type: "function", function: { name: "f", strict: 1 } }] }],
    ["tool_choice", { tools: [tool], tool_choice: "any" }],
    ["tool_choice", { tools: [tool], tool_choice: { type: "function", function: { name: "g" } } }],
    ["tool_choice.type", { tools: [tool], tool_choice: { type: "custom", custom: { name: "f" } } }],
    [
      "tool_choice.type",
      { tools: [tool], tool_choice: { type: "allowed_tools", allowed_tools: { mode: "auto", tools: [tool] } } },
    ],
    ["parallel_tool_calls", { parallel_tool_calls: "no" }],
    ["response_format.type", { response_format: { type: "xml" } }],
    ["response_format.json_schema", { response_format: { type: "json_schema" } }],
    ["response_format.json_schema.name", { response_format: { type: "json_schema", json_schema: {} } }],
    ["reasoning_effort", { reasoning_effort: "extreme" }],
    ["user", { user: 7 }],
    ["max_tokens", { max_tokens: 5, max_completion_tokens: 6 }],
    ["max_tokens", { max_tokens: 0 }],
    ["max_completion_tokens", { max_completion_tokens: 0 }],
    ["temperature", { temperature: 2.1 }],
    ["stop", { stop: ["1", "2", "3", "4", "5"] }],
    ["stop[1]", { stop: ["1", ""] }],
    ["stop", { stop: "\u{1f600}".repeat(201) }],
    ["stop", { stop: 7 }],
    ["messages", { messages: [] }],
    ["messages", { messages: Array(201).fill(said("x")) }],
    ["messages", { messages: Array(2_001).fill(said("x")) }],
    ["messages[0].tool_call_id", { messages: [{ role: "tool", content: "x", tool_call_id: "1" }] }],
    ["messages[0].tool_calls", { messages: [{ ...said("x"), tool_calls: [call] }] }],
    ["messages[0].content", { messages: [{ role: "user", content: null }] }],
    ["messages[1].content", { messages: [said("x"), { role: "assistant" }] }],
    ["messages[0].content", { messages: [{ role: "user", content: [] }] }],
    ["messages[0].content", { messages: [{ role: "user", content: { type: "text", text: "x" } }] }],
    ["messages[0].content[0]", { messages: [{ role: "user", content: ["x"] }] }],
    ["messages[0].content[0].image_url.url", { messages: user(image("data:")) }],
    ["messages[0].content[0].image_url", { messages: user({ type: "image_url" }) }],
    ["messages[0].content[0].image_url.url", { messages: user(image("http://169.254.169.254/latest/meta-data")) }],
    ["messages[0].content", { messages: [{ role: "system", content: [image("https://example.com/a.png")] }] }],
    ["messages[0].content[1].type", { messages: user({ type: "text", text: "x" }, { type: "file", file: { file_id: "f" } }) }],
    ["messages[0].content[0].text", { messages: user({ type: "text" }) }],
    ["messages[0].tool_calls[0].id", { messages: [{ role: "assistant", content: "", tool_calls: [tool] }] }],
    ["messages[0].tool_calls[1]", { messages: [{ role: "assistant", content: null, tool_calls: [call, call] }] }],
  ])("%s", async (param, fields) => {
    const error = await ask(key, fields);
    expect(error).toBeInstanceOf(BadRequestError);
    expect(error).toMatchObject({ code: "invalid_argument", type: "invalid_request_error", param });
    expect(error.message).toContain(param);
  });
});

test("a key in a text part is rejected with the name of the content", async () => {
  const content = [{ type: "text" as const, text: `My key is ${key.secret}.` }];
  const error = await ask(key, { messages: [{ role: "user", content }] });
  expect(error).toMatchObject({ status: 400, param: "messages[0].content" });
  expect(error.message).not.toContain(key.secret);
});

describe("the limits of a message:", () => {
  const part = (text: string) => ({ type: "text" as const, text });
  // Texts that are too long for the context window are reported only if all fields are valid.
  const withContent = (content: unknown) => ask(key, { messages: [...LONG, { role: "user", content }] });

  test.each([
    ["400,000 characters of four bytes", "\u{1f600}".repeat(400_000)],
    ["400,000 characters of four bytes in two parts", Array(2).fill(part("\u{1f600}".repeat(200_000)))],
    ["1,000 parts", Array(1_000).fill(part("x"))],
    ["no characters", ""],
  ])("%s are accepted", async (_name, content) => {
    expect(await withContent(content)).toMatchObject({ status: 400, code: "context_length_exceeded" });
  });

  test.each([
    ["400,001 characters of four bytes", "\u{1f600}".repeat(400_001)],
    ["400,001 characters in two parts", [part("x".repeat(400_000)), part("x")]],
    ["1,001 parts", Array(1_001).fill(part("x"))],
  ])("%s are refused", async (_name, content) => {
    expect(await withContent(content)).toMatchObject({ status: 400, param: "messages[1].content" });
  });
});
