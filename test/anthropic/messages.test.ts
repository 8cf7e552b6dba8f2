import type Anthropic from "@anthropic-ai/sdk";
import { describe, expect, test } from "vitest";
import { anthropic, refusalOf } from "../support/anthropic.ts";
import { useTestApp } from "../support/app.ts";
import { operatorOf } from "../support/fixtures.ts";
import { PNG } from "../support/images.ts";
import { chargesOf, usePaidKey } from "../support/openai.ts";
import { started } from "../support/started.ts";

const MODEL = "vx-sandbox-large";

const WEATHER: Anthropic.Tool = {
  name: "get_weather",
  description: "Returns the weather of a city.",
  input_schema: { type: "object", properties: { city: { type: "string" }, unit: { enum: ["c", "f"] } }, required: ["city"] },
};

const app = useTestApp();
const key = usePaidKey(app);
const client = started(() => anthropic(app, key));

const BASE = { model: MODEL, max_tokens: 500 };
const ask = (content: Anthropic.MessageParam["content"], rest: Partial<Anthropic.MessageCreateParamsNonStreaming> = {}) =>
  client.messages.create({ ...BASE, messages: [{ role: "user", content }], ...rest });

test("system messages between others, and the query of the beta client, are accepted", async () => {
  const message = await client.beta.messages.create({
    ...BASE,
    betas: ["mid-conversation-system-2026-04-07"],
    context_management: { edits: [{ type: "clear_thinking_20251015", keep: "all" }] },
    messages: [
      { role: "user", content: "Hello" },
      { role: "system", content: [{ type: "text", text: "Be brief." }] },
    ],
  });
  expect(message.stop_reason).toBe("end_turn");
  const body = { ...BASE, messages: [{ role: "user", content: "Hello" }] };
  expect(await client.post("/v1/messages?beta=true", { body })).toMatchObject({ type: "message" });
});

describe("a message", () => {
  test("has the form of Anthropic's API and is charged once", async () => {
    const before = (await chargesOf(operatorOf(app), key)).length;
    const message = await ask("Hello", { system: "Be brief." });
    expect(message).toMatchObject({
      type: "message",
      role: "assistant",
      model: MODEL,
      content: [{ type: "text", text: expect.stringMatching(/^This is a reply of the sandbox\./) }],
      stop_reason: "end_turn",
      stop_sequence: null,
    });
    expect(message.id).toMatch(/^msg_/);
    const charges = await chargesOf(operatorOf(app), key);
    expect(charges.length).toBe(before + 1);
    expect(charges[0]).toMatchObject({
      id: message.id.replace("msg_", "led_"),
      inputTokens: BigInt(message.usage.input_tokens),
      outputTokens: BigInt(message.usage.output_tokens),
    });
  });

  test("that reaches the token limit has the stop reason max_tokens", async () => {
    expect(await ask("[[tokens=100]]", { max_tokens: 5 })).toMatchObject({
      stop_reason: "max_tokens",
      usage: { output_tokens: 5 },
    });
  });

  test("accepts blocks, images, cache controls and unknown fields", async () => {
    const image = { type: "base64", media_type: "image/png", data: PNG.toString("base64") } as const;
    const message = await ask(
      [
        { type: "text", text: "What is this?", cache_control: { type: "ephemeral" } },
        { type: "image", source: image },
        { type: "image", source: { type: "url", url: "https://example.com/cat.png" } },
      ],
      {
        system: [{ type: "text", text: "Be brief.", cache_control: { type: "ephemeral" } }],
        metadata: { user_id: "user-1" },
        ...{ context_management: { edits: [] } },
      },
    );
    expect(message.stop_reason).toBe("end_turn");
    // 1,000 characters could not explain this many tokens.
    expect(message.usage.input_tokens).toBeGreaterThan(100);
  });
});

describe("tools", () => {
  test("a conversation with a call and its result ends with a text", async () => {
    const messages: Anthropic.MessageParam[] = [{ role: "user", content: "[[tool]] What is the weather?" }];
    const first = await client.messages.create({ ...BASE, messages, tools: [WEATHER] });
    expect(first.stop_reason).toBe("tool_use");
    const call = first.content.find((block) => block.type === "tool_use");
    expect(call).toMatchObject({ name: "get_weather", input: { city: expect.any(String) } });
    messages.push({ role: "assistant", content: first.content });
    messages.push({
      role: "user",
      content: [{ type: "tool_result", tool_use_id: call?.id ?? "", content: [{ type: "text", text: "20 °C" }] }],
    });
    const second = await client.messages.create({ ...BASE, messages, tools: [WEATHER] });
    expect(second).toMatchObject({ stop_reason: "end_turn", content: [{ type: "text" }] });
  });

  test("a forced choice calls that tool", async () => {
    const other = { ...WEATHER, name: "other" };
    const tool_choice = { type: "tool", name: "other" } as const;
    const { content } = await ask("Hello", { tools: [WEATHER, other], tool_choice });
    expect(content.filter(({ type }) => type === "tool_use")).toMatchObject([{ name: "other" }]);
  });
});

test("the reply matches the schema of the request", async () => {
  const schema = {
    type: "object",
    properties: { answer: { type: "string" }, score: { type: "integer" } },
    required: ["answer", "score"],
    additionalProperties: false,
  };
  const { content } = await ask("Hello", { output_config: { format: { type: "json_schema", schema } } });
  const [block] = content;
  expect(JSON.parse(block?.type === "text" ? block.text : "")).toEqual({ answer: expect.any(String), score: expect.any(Number) });
});

test("thinking has a signature and can be sent back", async () => {
  const thinking = { type: "enabled", budget_tokens: 1_024 } as const;
  const first = await ask("[[reasoning=20]] Hello", { thinking, max_tokens: 4_000 });
  expect(first.content.map(({ type }) => type)).toEqual(["thinking", "text"]);
  expect(first.content[0]).toMatchObject({ signature: expect.stringMatching(/./) });
  expect(first.usage.output_tokens_details?.thinking_tokens).toBe(20);
  const said = (content: string) => ({ role: "user" as const, content });
  const messages = [said("Hello"), { role: "assistant" as const, content: first.content }, said("Go on.")];
  const second = await client.messages.create({ ...BASE, messages });
  expect(second.stop_reason).toBe("end_turn");
});

describe("a stream", () => {
  test("has the events of Anthropic's API, and the final message equals the unary reply", async () => {
    const params = { ...BASE, messages: [{ role: "user" as const, content: "Hello" }] };
    const stream = client.messages.stream(params);
    const types: string[] = [];
    for await (const event of stream) types.push(event.type);
    expect([...new Set(types)]).toEqual([
      "message_start",
      "content_block_start",
      "content_block_delta",
      "content_block_stop",
      "message_delta",
      "message_stop",
    ]);
    const unary = await client.messages.create(params);
    const { content, stop_reason, usage } = await stream.finalMessage();
    expect({ content, stop_reason }).toEqual({ content: unary.content, stop_reason: unary.stop_reason });
    const { input_tokens, output_tokens } = unary.usage;
    expect(usage).toMatchObject({ input_tokens, output_tokens });
  });

  test("streams thinking and the input of tools", async () => {
    const stream = client.messages.stream({
      model: MODEL,
      max_tokens: 4_000,
      thinking: { type: "enabled", budget_tokens: 1_024 },
      tools: [WEATHER],
      messages: [{ role: "user", content: "[[tool reasoning=20]] What is the weather?" }],
    });
    const message = await stream.finalMessage();
    expect(message.stop_reason).toBe("tool_use");
    expect(message.content).toMatchObject([
      { type: "thinking", signature: expect.stringMatching(/./) },
      { type: "tool_use", name: "get_weather", input: { city: expect.any(String) } },
    ]);
  });
});

test("counting stops at the context window", async () => {
  const messages: Anthropic.MessageParam[] = [{ role: "user", content: "word ".repeat(70_000) }];
  const count = client.messages.countTokens({ model: "vx-sandbox-small", messages });
  expect((await refusalOf(count)).error).toMatchObject({ error: { code: "context_length_exceeded" } });
});

test("tokens are counted without a charge", async () => {
  const before = (await chargesOf(operatorOf(app), key)).length;
  const messages: Anthropic.MessageParam[] = [{ role: "user", content: "Hello" }];
  const plain = await client.messages.countTokens({ model: MODEL, messages });
  const withTools = await client.messages.countTokens({ model: MODEL, messages, tools: [WEATHER] });
  expect(plain.input_tokens).toBe((await ask("Hello")).usage.input_tokens);
  expect(withTools.input_tokens).toBeGreaterThan(plain.input_tokens);
  expect((await chargesOf(operatorOf(app), key)).length).toBe(before + 1);
});
