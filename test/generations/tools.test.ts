import { expect, test } from "vitest";
import { TokenCounter } from "../../src/tokens/token-counter.ts";
import type { Behaviour } from "../support/fake-upstreams/fake-upstream.ts";
import { type GenerateFields, type Generator, useGenerator } from "../support/generators.ts";
import { GIF, imageOfSize, PNG } from "../support/images.ts";
import { ABLE_MODEL, SANDBOX_MODEL, useMetered } from "../support/metered.ts";

const metered = useMetered();

const WEATHER = {
  name: "get_weather",
  description: "The weather in a city.",
  parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
};
const QUESTION = { role: "user", content: "What is the weather in Bern?" };
const ASKED: GenerateFields = {
  model: SANDBOX_MODEL,
  messages: [QUESTION],
  tools: [WEATHER, { name: "get_time" }],
  toolChoice: "get_weather",
  maxTokens: 200,
};

/** All events of a stream as one reply. */
async function joined(generator: Generator, request: GenerateFields, secret: string, headers = {}) {
  const calls: { id: string; name: string; arguments: string }[] = [];
  const reasoning = { text: "", signature: "" };
  let content = "";
  for await (const { event } of generator.stream(request, { secret, headers })) {
    if (event.case !== "delta") return { content, calls, reasoning, ...event.value };
    const { toolCall, reasoning: thought } = event.value;
    content += event.value.content;
    reasoning.text += thought?.text ?? "";
    reasoning.signature += thought?.signature ?? "";
    if (!toolCall) continue;
    const call = calls[toolCall.index];
    if (call) {
      expect([toolCall.id, toolCall.name]).toEqual(["", ""]);
      call.arguments += toolCall.arguments;
    } else calls[toolCall.index] = { ...toolCall };
  }
  throw new Error("the stream ended without its last event");
}

const generator = useGenerator(metered);

test("a tool is called, its result is sent back with the reply, and the next reply is text", async () => {
  const { secret } = await metered.payer(1_000_000n);
  const { message, finishReason } = await generator.generate(ASKED, { secret });
  expect(finishReason).toBe("tool_calls");
  const [call, ...others] = message?.toolCalls ?? [];
  expect(others).toEqual([]);
  expect(call).toMatchObject({ id: expect.stringMatching(/^call_/), name: "get_weather" });
  expect(JSON.parse(call?.arguments ?? "")).toMatchObject({ city: expect.any(String) });
  if (!message || !call) return;
  const result = { role: "tool", toolCallId: call.id, parts: [{ text: "sunny, " }, { text: "21 °C" }] };
  const { toolChoice: _, tools: __, ...without } = ASKED;
  for (const request of [ASKED, without]) {
    const reply = await generator.generate({ ...request, messages: [QUESTION, message, result] }, { secret });
    expect(reply).toMatchObject({ finishReason: "stop", message: { toolCalls: [] } });
    expect(reply.message?.content).not.toBe("");
  }
});

test("a stream has the same tool calls and reasoning as the reply in one piece", async () => {
  const { secret } = await metered.payer(1_000_000n);
  const request: GenerateFields = {
    ...ASKED,
    messages: [{ role: "user", content: "[[tools=2 tokens=9]] What is the weather?" }],
    toolChoice: "auto",
    reasoningEffort: "low",
  };
  const { message, usage, finishReason } = await generator.generate(request, { secret });
  const streamed = await joined(generator, request, secret);
  const calls = message?.toolCalls.map(({ id, name, arguments: text }) => ({ id, name, arguments: text }));
  expect(calls?.map(({ name }) => name)).toEqual(["get_weather", "get_time"]);
  expect(streamed).toMatchObject({ content: message?.content, calls, finishReason });
  const [block, ...others] = message?.reasoning ?? [];
  expect(others).toEqual([]);
  expect(block).toMatchObject({ text: streamed.reasoning.text, signature: streamed.reasoning.signature });
  expect(block?.text).not.toBe("");
  expect(usage).toEqual(streamed.usage);
  expect(usage?.reasoningTokens).toBe(16n);
  expect(usage?.outputTokens).toBeGreaterThan(25n);
});

test("images are counted, and the usage shows their tokens within the input tokens", async () => {
  const { secret } = await metered.payer(100_000_000n);
  const parts = [
    { text: "What is this?" },
    { image: { data: PNG, mediaType: "image/png", detail: "low" } },
    { image: { data: imageOfSize(5_000_000) } },
    { image: { url: "https://example.com/cat.png" } },
  ];
  const request = { model: SANDBOX_MODEL, messages: [{ role: "user", parts }], maxTokens: 20 };
  const { usage } = await generator.generate(request, { secret });
  expect(usage?.imageTokens).toBe(3n * 85n);
  expect(usage?.inputTokens).toBeGreaterThan(3n * 85n);
});

test("a reply follows a JSON schema", async () => {
  const { secret } = await metered.payer(1_000_000n);
  const schema = { type: "object", properties: { ok: { type: "boolean" } }, required: ["ok"] };
  const request = { model: SANDBOX_MODEL, messages: [QUESTION], responseFormat: { type: "json_schema", schema } };
  const reply = await generator.generate(request, { secret });
  expect(JSON.parse(reply.message?.content ?? "")).toMatchObject({ ok: expect.any(Boolean) });
});

test("a retry gets the stored tool calls and reasoning; a changed tool schema is another payload", async () => {
  const key = await metered.payer(1_000_000n);
  const headers = { "idempotency-key": "weather" };
  const request = { ...ASKED, reasoningEffort: "minimal" };
  const first = await generator.generate(request, { secret: key.secret, headers });
  expect(first.message).toMatchObject({ toolCalls: [{}], reasoning: [{}] });
  expect(await generator.generate(request, { secret: key.secret, headers })).toEqual(first);
  const other = [{ ...WEATHER, parameters: { ...WEATHER.parameters, required: [] } }];
  const reused = { reason: "idempotency_key_reused" };
  for (const changed of [{ tools: other }, { toolChoice: "required" }, { user: "someone" }])
    await expect(generator.generate({ ...request, ...changed }, { secret: key.secret, headers })).rejects.toMatchObject(reused);
  const replayed = { "idempotency-key": "streamed" };
  const stream = await joined(generator, request, key.secret, replayed);
  expect(await joined(generator, request, key.secret, replayed)).toEqual(stream);
  expect(await metered.rows(key)).toHaveLength(2);
});

test("a disconnect in the middle of arguments is charged for the input and the arguments until then", async () => {
  const key = await metered.payer(10_000n);
  metered.upstream.next(partOfCall);
  const request = { ...ASKED, model: ABLE_MODEL };
  for await (const { event } of generator.stream(request, { secret: key.secret })) {
    expect(event.value).toMatchObject({ toolCall: { id: "call_1", arguments: PART } });
    break;
  }
  await metered.settled();
  const tokens = new TokenCounter();
  const output = await tokens.countTexts(["get_weather", PART]);
  await tokens.close();
  const rows = await metered.rows(key);
  expect(rows).toMatchObject([{ output, reason: expect.stringContaining("(the caller disconnected)") }]);
  // The definitions of the tools are a part of the input.
  expect(rows[0]?.input).toBeGreaterThan(30);
  expect((await metered.account(key)).held).toBe(0);
});

// test/generations/check-request.test.ts has the rules of all formats.
const from = (role: string, fields: object) => ({ messages: [{ role, ...fields }] });
const parts = (...list: object[]) => from("user", { parts: list });
test.each<[string, Partial<GenerateFields>, string]>([
  ["content and parts", from("user", { content: "x", parts: [{ text: "x" }] }), "messages[0].parts"],
  ["no content", from("assistant", { reasoning: [{ text: "x" }] }), "messages[0].content"],
  ["an empty part", parts({}), "messages[0].parts[0]"],
  ["a part with text and image", parts({ text: "x", image: { data: PNG } }), "messages[0].parts[0]"],
  ["an image without a source", parts({ image: {} }), "messages[0].parts[0].image"],
  ["an image of another type", parts({ image: { data: GIF, mediaType: "image/png" } }), "messages[0].parts[0].image.data"],
  [
    "the type of a URL",
    parts({ image: { url: "https://a.b/", mediaType: "image/png" } }),
    "messages[0].parts[0].image.media_type",
  ],
  ["an image at a private address", parts({ image: { url: "http://169.254.169.254/" } }), "messages[0].parts[0].image.url"],
  ["a result without its call", from("tool", { content: "x", toolCallId: "a" }), "messages[0].tool_call_id"],
  ["a schema with another type", { responseFormat: { type: "json", schema: {} } }, "response_format"],
  ["a missing schema", { responseFormat: { type: "json_schema" } }, "response_format.schema"],
  ["another effort", { reasoningEffort: "extreme" }, "reasoning_effort"],
  ["a user of 129 characters", { user: "x".repeat(129) }, "user"],
])("%s is refused with the name of the field", async (_, fields, field) => {
  const { secret } = await metered.payer(1_000n);
  const refused = { reason: "invalid_argument", message: expect.stringContaining(`${field}: `) };
  await expect(generator.generate({ ...ASKED, ...fields }, { secret })).rejects.toMatchObject(refused);
});

const PART = '{"city": "Ber';

/** Begins a tool call and sends nothing more. */
const partOfCall: Behaviour = async (turn) => {
  const call = { index: 0, id: "call_1", type: "function", function: { name: "get_weather", arguments: PART } };
  const choice = { index: 0, delta: { tool_calls: [call] }, finish_reason: null };
  turn.head();
  await turn.send(`${turn.wire.begin(turn.reply)}data: ${JSON.stringify({ choices: [choice] })}\n\n`);
};
