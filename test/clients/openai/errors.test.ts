import OpenAI from "openai";
import { describe, expect, test, vi } from "vitest";
import { useTestApp } from "../../support/app.ts";
import { createTestKey, operatorOf } from "../../support/fixtures.ts";
import { withinOneMinute } from "../../support/minute.ts";
import { chargesOf, createPaidKey, failureOf, openAi, SMALL, said, usePaidKey } from "../../support/openai.ts";

const app = useTestApp();
const key = usePaidKey(app);

const hello = { model: SMALL, messages: [said("Hello")] };

describe.each([false, true])("with stream: %j", (stream) => {
  const ask = (payer: { secret: string }, body: object = {}) =>
    failureOf(openAi(app, payer).chat.completions.create({ ...hello, ...body, stream }));

  test("an unknown key is an AuthenticationError", async () => {
    const error = await ask({ secret: "vx_live_nobody" });
    expect(error).toBeInstanceOf(OpenAI.AuthenticationError);
    expect(error).toMatchObject({ status: 401, code: "invalid_api_key", type: "authentication_error" });
  });

  test("a revoked key is an AuthenticationError with the reason", async () => {
    const revoked = await createPaidKey(operatorOf(app));
    await operatorOf(app).revokeKey({ keyId: revoked.id });
    expect(await ask(revoked)).toMatchObject({ status: 401, code: "revoked_api_key" });
  });

  test("a key without the scope is a PermissionDeniedError", async () => {
    const narrow = await createTestKey(operatorOf(app), { scopes: ["read"] });
    const error = await ask(narrow);
    expect(error).toBeInstanceOf(OpenAI.PermissionDeniedError);
    expect(error).toMatchObject({ status: 403, code: "insufficient_scope", type: "permission_error" });
  });

  test("an empty balance is a 402 that is not retried, and nothing runs", async () => {
    const broke = await createTestKey(operatorOf(app));
    let sent = 0;
    const counted: typeof fetch = (...args) => {
      sent++;
      return fetch(...args);
    };
    const patient = openAi(app, broke, { maxRetries: 2, fetch: counted });
    const error = await failureOf(patient.chat.completions.create({ ...hello, stream }));
    expect(sent).toBe(1);
    expect(error).toMatchObject({ status: 402, code: "insufficient_balance", type: "billing_error" });
    expect(error.message).toMatch(/balance is \$0\.00/);
    expect(await chargesOf(operatorOf(app), broke)).toEqual([]);
  });

  test("the replay of an interrupted response is a conflict that the client does not retry", async () => {
    const payer = await createPaidKey(operatorOf(app));
    let sent = 0;
    const counted: typeof fetch = (...args) => {
      sent++;
      return fetch(...args);
    };
    const client = openAi(app, payer, { maxRetries: 2, fetch: counted });
    const request = { headers: { "idempotency-key": "cut" } };
    await client.chat.completions.create({ ...hello, stream }, request);
    await vi.waitFor(async () => {
      const cut = await app.database.owner`
        UPDATE vx.answers SET answer = answer::jsonb || '{"content": "", "failure": "revoked_api_key"}'
        WHERE account_id = ${payer.accountId} AND answer IS NOT NULL RETURNING 1`;
      expect(cut).toHaveLength(1);
    });
    sent = 0;
    const error = await failureOf(client.chat.completions.create({ ...hello, stream }, request));
    expect(sent).toBe(1);
    expect(error).toBeInstanceOf(OpenAI.ConflictError);
    expect(error).toMatchObject({ status: 409, code: "generation_interrupted" });
  });

  test("an unknown model is a NotFoundError", async () => {
    const error = await ask(key, { model: "gpt-4o" });
    expect(error).toBeInstanceOf(OpenAI.NotFoundError);
    expect(error).toMatchObject({ status: 404, code: "model_not_found", param: "model" });
  });

  test("a call above the limit is a RateLimitError with retry-after", async () => {
    await withinOneMinute(async () => {
      const limited = await createPaidKey(operatorOf(app), { rateLimitRpm: 1 });
      await openAi(app, limited).models.list();
      const error = await ask(limited);
      expect(error).toBeInstanceOf(OpenAI.RateLimitError);
      expect(error).toMatchObject({ status: 429, code: "rate_limit_exceeded", type: "rate_limit_error" });
      expect(Number(error.headers?.get("retry-after"))).toBeGreaterThanOrEqual(1);
      expect(Number(error.headers?.get("retry-after"))).toBeLessThanOrEqual(60);
    });
  });

  test("messages that exceed the context window get OpenAI's code context_length_exceeded", async () => {
    const error = await ask(key, { messages: [said("word ".repeat(9_000))] });
    expect(error).toBeInstanceOf(OpenAI.BadRequestError);
    expect(error).toMatchObject({ status: 400, code: "context_length_exceeded", param: "messages" });
  });
});

describe("an unsupported option is a BadRequestError with its name:", () => {
  const tool = { type: "function", function: { name: "f", parameters: {} } };
  const call = { id: "1", type: "function", function: { name: "f", arguments: "{}" } };
  const image = (url: string, detail?: string) => ({ type: "image_url", image_url: { url, detail } });
  test.each([
    ["n", { n: 2 }],
    ["top_p", { top_p: 1.1 }],
    ["top_p", { top_p: "1" }],
    ["frequency_penalty", { frequency_penalty: 2.1 }],
    ["presence_penalty", { presence_penalty: -2.1 }],
    ["seed", { seed: 1e300 }],
    ["tools", { tools: { tool } }],
    ["tools", { tools: Array(257).fill(tool) }],
    ["tools[0].type", { tools: [{ type: "custom", custom: { name: "f" } }], tool_choice: "required" }],
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
      {
        tools: [tool],
        tool_choice: { type: "allowed_tools", allowed_tools: { mode: "auto", tools: [tool] } },
      },
    ],
    ["parallel_tool_calls", { parallel_tool_calls: "no" }],
    ["functions", { functions: [{ name: "f" }] }],
    ["function_call", { function_call: { name: "f" } }],
    ["response_format.type", { response_format: { type: "xml" } }],
    ["response_format.json_schema", { response_format: { type: "json_schema" } }],
    ["response_format.json_schema.name", { response_format: { type: "json_schema", json_schema: {} } }],
    ["logprobs", { logprobs: true }],
    ["top_logprobs", { top_logprobs: 5 }],
    ["logit_bias", { logit_bias: { "50256": -100 } }],
    ["modalities", { modalities: ["text", "audio"] }],
    ["audio", { audio: { voice: "alloy", format: "mp3" } }],
    ["web_search_options", { web_search_options: {} }],
    ["store", { store: true }],
    ["service_tier", { service_tier: "flex" }],
    ["reasoning_effort", { reasoning_effort: "extreme" }],
    ["moderation", { moderation: { model: "omni-moderation-latest" } }],
    ["user", { user: 7 }],
    ["verbosity", { verbosity: "low" }],
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
    ["messages[0].role", { messages: [{ role: "function", name: "f", content: "x" }] }],
    ["messages[0].tool_call_id", { messages: [{ role: "tool", content: "x", tool_call_id: "1" }] }],
    ["messages[0].tool_calls", { messages: [{ ...said("x"), tool_calls: [call] }] }],
    ["messages[0].content", { messages: [{ role: "user", content: null }] }],
    ["messages[1].content", { messages: [said("x"), { role: "assistant" }] }],
    ["messages[0].content", { messages: [{ role: "user", content: [] }] }],
    ["messages[0].content", { messages: [{ role: "user", content: { type: "text", text: "x" } }] }],
    ["messages[0].content[0]", { messages: [{ role: "user", content: ["x"] }] }],
    [
      "messages[0].content[0].image_url.url",
      { messages: [{ role: "user", content: [{ type: "image_url", image_url: { url: "data:" } }] }] },
    ],
    ["messages[0].content[0].image_url", { messages: [{ role: "user", content: [{ type: "image_url" }] }] }],
    [
      "messages[0].content[0].image_url.detail",
      { messages: [{ role: "user", content: [image("https://example.com/a.png", "original")] }] },
    ],
    [
      "messages[0].content[0].image_url.url",
      { messages: [{ role: "user", content: [image("http://169.254.169.254/latest/meta-data")] }] },
    ],
    ["messages[0].content", { messages: [{ role: "system", content: [image("https://example.com/a.png")] }] }],
    [
      "messages[0].content[0].type",
      {
        messages: [{ role: "user", content: [{ type: "input_audio", input_audio: { data: "", format: "mp3" } }] }],
      },
    ],
    [
      "messages[0].content[1].type",
      {
        messages: [
          {
            role: "user",
            content: [
              { type: "text", text: "x" },
              { type: "file", file: { file_id: "f" } },
            ],
          },
        ],
      },
    ],
    ["messages[0].content[0].text", { messages: [{ role: "user", content: [{ type: "text" }] }] }],
    ["messages[0].tool_calls[0].id", { messages: [{ role: "assistant", content: "", tool_calls: [tool] }] }],
    [
      "messages[0].tool_calls[0].type",
      { messages: [{ role: "assistant", tool_calls: [{ type: "custom", id: "1", custom: {} }] }] },
    ],
    ["messages[0].tool_calls[1]", { messages: [{ role: "assistant", content: null, tool_calls: [call, call] }] }],
    ["messages[0].function_call", { messages: [{ role: "assistant", content: "", function_call: { name: "f" } }] }],
    ["messages[0].audio", { messages: [{ role: "assistant", content: "", audio: { id: "a" } }] }],
  ])("%s", async (param, fields) => {
    const { completions } = openAi(app, key).chat;
    const error = await failureOf(completions.create({ ...hello, ...fields } as typeof hello));
    expect(error).toBeInstanceOf(OpenAI.BadRequestError);
    expect(error).toMatchObject({ code: "invalid_argument", type: "invalid_request_error", param });
    expect(error.message).toContain(param);
  });
});

test("a key in a text part is rejected with the name of the content", async () => {
  const content = [{ type: "text" as const, text: `My key is ${key.secret}.` }];
  const { completions } = openAi(app, key).chat;
  const error = await failureOf(completions.create({ ...hello, messages: [{ role: "user", content }] }));
  expect(error).toMatchObject({ status: 400, param: "messages[0].content" });
  expect(error.message).not.toContain(key.secret);
});

describe("the limits of a message:", () => {
  const part = (text: string) => ({ type: "text" as const, text });
  // Texts that are too long for the context window are reported only if all fields are valid.
  const ask = (content: string | { type: "text"; text: string }[]) =>
    failureOf(
      openAi(app, key).chat.completions.create({
        ...hello,
        messages: [said("word ".repeat(9_000)), { role: "user", content }],
      }),
    );

  test.each([
    ["400,000 characters", "x".repeat(400_000)],
    ["400,000 characters of four bytes", "\u{1f600}".repeat(400_000)],
    ["400,000 characters of four bytes in two parts", Array(2).fill(part("\u{1f600}".repeat(200_000)))],
    ["1,000 parts", Array(1_000).fill(part("x"))],
    ["no characters", ""],
  ])("%s are accepted", async (_name, content) => {
    expect(await ask(content)).toMatchObject({ status: 400, code: "context_length_exceeded" });
  });

  test.each([
    ["400,001 characters", "x".repeat(400_001)],
    ["400,001 characters of four bytes", "\u{1f600}".repeat(400_001)],
    ["400,001 characters in two parts", [part("x".repeat(400_000)), part("x")]],
    ["1,001 parts", Array(1_001).fill(part("x"))],
  ])("%s are refused", async (_name, content) => {
    expect(await ask(content)).toMatchObject({ status: 400, param: "messages[1].content" });
  });
});
