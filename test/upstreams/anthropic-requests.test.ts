import { describe, expect, test } from "vitest";
import type { RemoteSettings } from "../../src/domain/model.ts";
import type { Prompt, Reasoning, ReasoningEffort, ToolChoice } from "../../src/domain/prompt.ts";
import { turnsOf } from "../../src/upstreams/anthropic/body.ts";
import { FakeUpstream } from "../support/fake-upstreams/fake-upstream.ts";
import { anthropicWire } from "../support/fake-upstreams/wire.ts";
import { promptOf } from "../support/samples.ts";
import { started } from "../support/started.ts";
import { AGENT, CONVERSATION, sentTo } from "./requests-support.ts";
import { PROMPT } from "./support.ts";

const fake = started(() => FakeUpstream.start({ wire: anthropicWire }));
const sent = (prompt: Prompt, options: Partial<RemoteSettings> = {}, env: Record<string, string> = {}) =>
  sentTo(fake, prompt, options, env);

test("a prompt is sent with a separate system field, alternating roles and a temperature in range", async () => {
  const { body } = await sent(CONVERSATION);
  const text = (content: string) => ({ type: "text", text: content });
  expect(body).toEqual({
    model: "fake-model",
    messages: [
      { role: "user", content: [text("One."), text("Two."), text("Three.")] },
      { role: "assistant", content: "Yes?" },
      { role: "user", content: "Four." },
    ],
    max_tokens: 7,
    system: [text("Be brief."), text("Be kind.")],
    temperature: 1,
    stop_sequences: ["END", "\n."],
    stream: true,
  });
});

test("cache controls and failed results are sent", async () => {
  const cacheControl = { type: "ephemeral" };
  const { body } = await sent(
    promptOf({
      messages: [
        { role: "system", content: [{ kind: "text", text: "Be brief.", cacheControl }] },
        { role: "user", content: "Hello" },
        { role: "assistant", content: "", toolCalls: [{ id: "1", name: "a", arguments: "{}" }] },
        { role: "tool", content: "It failed.", toolCallId: "1", isError: true, cacheControl },
      ],
      options: { tools: [{ name: "a", description: undefined, parameters: undefined, strict: undefined, cacheControl }] },
    }),
  );
  const cached = { cache_control: cacheControl };
  expect(body).toMatchObject({
    system: [{ type: "text", text: "Be brief.", ...cached }],
    tools: [{ name: "a", ...cached }],
    messages: [
      { role: "user" },
      { role: "assistant" },
      { role: "user", content: [{ type: "tool_result", tool_use_id: "1", is_error: true, ...cached }] },
    ],
  });
});

test("tools, calls, results, images and options are sent", async () => {
  const { topP, tools, responseFormat } = AGENT.options;
  const options = { topP, topK: 5, tools, responseFormat, toolChoice: { kind: "required" } as const };
  const { body } = await sent({ ...AGENT, options: { ...options, parallelToolCalls: false } } as Prompt);
  expect(body).toEqual({
    model: "fake-model",
    messages: [
      {
        role: "user",
        content: [
          { type: "text", text: "Look." },
          { type: "image", source: { type: "url", url: "https://example.com/a.png" } },
          { type: "image", source: { type: "base64", media_type: "image/png", data: "AAAA" } },
        ],
      },
      {
        role: "assistant",
        content: [
          { type: "thinking", thinking: "Hm.", signature: "sig" },
          { type: "tool_use", id: "c1", name: "look", input: { at: 1 } },
        ],
      },
      { role: "user", content: [{ type: "tool_result", tool_use_id: "c1", content: "nothing" }] },
      { role: "assistant", content: "Nothing." },
      { role: "user", content: "Again." },
    ],
    max_tokens: 100,
    top_p: 0.5,
    top_k: 5,
    tools: [
      { name: "look", description: "Looks.", input_schema: { type: "object" }, strict: true },
      { name: "wait", input_schema: { type: "object" } },
    ],
    tool_choice: { type: "any", disable_parallel_tool_use: true },
    output_config: { format: { type: "json_schema", schema: { type: "object" } } },
    stream: true,
  });
});

test("results of tools and the text after them become one turn of the user", async () => {
  const call = (id: string) => ({ id, name: "f", arguments: "{}" });
  const image = { kind: "image", image: { kind: "url", url: "https://example.com/a.png" }, detail: "high" } as const;
  const { body } = await sent(
    promptOf({
      messages: [
        { role: "user", content: "Go." },
        { role: "assistant", content: "", toolCalls: [call("a"), call("b"), call("c")] },
        { role: "tool", toolCallId: "a", content: "" },
        { role: "tool", toolCallId: "b", content: [image, { kind: "text", text: "" }] },
        { role: "tool", toolCallId: "c", content: "done" },
        { role: "user", content: "" },
        { role: "user", content: "Well?" },
      ],
    }),
  );
  expect((body.messages as unknown[]).at(-1)).toEqual({
    role: "user",
    content: [
      { type: "tool_result", tool_use_id: "a" },
      {
        type: "tool_result",
        tool_use_id: "b",
        content: [{ type: "image", source: { type: "url", url: "https://example.com/a.png" } }],
      },
      { type: "tool_result", tool_use_id: "c", content: "done" },
      { type: "text", text: "Well?" },
    ],
  });
});

test.each<[ToolChoice | undefined, boolean | undefined, object | undefined]>([
  [undefined, undefined, undefined],
  [undefined, true, undefined],
  [undefined, false, { type: "auto", disable_parallel_tool_use: true }],
  [{ kind: "none" }, false, { type: "none" }],
  [{ kind: "auto" }, undefined, { type: "auto" }],
  [{ kind: "tool", name: "look" }, false, { type: "tool", name: "look", disable_parallel_tool_use: true }],
])("the tool choice %o with parallel calls %s is sent", async (toolChoice, parallelToolCalls, expected) => {
  const { tools } = AGENT.options;
  const { body } = await sent({ ...PROMPT, options: { tools, toolChoice, parallelToolCalls } } as Prompt);
  expect(body.tool_choice).toEqual(expected);
});

test("only reasoning with a signature that the API can verify is sent", async () => {
  const reasoning = [
    { text: "signed", signature: "s", encrypted: undefined },
    { text: "", signature: undefined, encrypted: "e" },
    { text: "of another server", signature: undefined, encrypted: undefined },
    { text: "of another server", signature: undefined, encrypted: "rs_1:e" },
  ];
  const { body } = await sent(
    promptOf({ messages: [...PROMPT.messages, { role: "assistant", content: "Yes.", reasoning }, ...PROMPT.messages] }),
  );
  expect((body.messages as { content: unknown }[])[1]?.content).toEqual([
    { type: "thinking", thinking: "signed", signature: "s" },
    { type: "redacted_thinking", data: "e" },
    { type: "text", text: "Yes." },
  ]);
});

describe("reasoning_effort", () => {
  const fieldsOf = async (reasoningEffort: ReasoningEffort, model: string, prompt: Partial<Prompt> = {}) => {
    const { thinking, output_config } = (
      await sent(promptOf({ maxTokens: 10_000, ...prompt, options: { reasoningEffort } }), { model })
    ).body;
    return { thinking, output_config };
  };

  test("enables adaptive thinking for newer Claude models", async () => {
    for (const model of ["claude-opus-5-5", "claude-sonnet-4-6", "us.anthropic.claude-opus-4-7-v1"]) {
      expect(await fieldsOf("minimal", model)).toEqual({ thinking: { type: "adaptive" }, output_config: { effort: "low" } });
      expect(await fieldsOf("none", model)).toEqual({ thinking: { type: "disabled" }, output_config: undefined });
    }
  });

  test("gives older Claude models, and other models, a budget below max_tokens", async () => {
    for (const model of ["claude-sonnet-4-5-20250929", "claude-opus-4-20250514", "claude-3-7-sonnet-latest", "kimi-k2"]) {
      const budget = async (effort: ReasoningEffort, maxTokens: number) =>
        (await fieldsOf(effort, model, { maxTokens })).thinking;
      expect(await budget("medium", 10_000)).toEqual({ type: "enabled", budget_tokens: 5_000 });
      expect(await budget("low", 1_025)).toEqual({ type: "enabled", budget_tokens: 1_024 });
      expect(await budget("high", 100_000)).toEqual({ type: "enabled", budget_tokens: 32_000 });
      expect(await budget("high", 1_024)).toBeUndefined();
      expect(await budget("none", 10_000)).toBeUndefined();
    }
  });

  test("keeps the budget of the caller, below max_tokens", async () => {
    const budget = async (reasoningBudgetTokens: number) => {
      const options = { reasoningEffort: "low" as const, reasoningBudgetTokens };
      const { body } = await sent(promptOf({ maxTokens: 4_000, options }), { model: "claude-3-7-sonnet" });
      return (body as { thinking: { budget_tokens: number } }).thinking.budget_tokens;
    };
    expect([await budget(2_000), await budget(10_000)]).toEqual([2_000, 3_999]);
  });

  test("gives no budget if the reply continues one whose reasoning is missing", async () => {
    const conversation = (reasoning?: Reasoning[]): Partial<Prompt> => ({
      messages: [
        { role: "user", content: "Go." },
        {
          role: "assistant",
          content: "",
          toolCalls: [{ id: "a", name: "f", arguments: "{}" }],
          ...(reasoning ? { reasoning } : {}),
        },
        { role: "tool", toolCallId: "a", content: "done" },
      ],
    });
    const signed = [{ text: "", signature: "s", encrypted: undefined }];
    expect((await fieldsOf("low", "claude-sonnet-4-5", conversation())).thinking).toBeUndefined();
    expect((await fieldsOf("low", "claude-sonnet-4-5", conversation(signed))).thinking).toBeDefined();
    expect((await fieldsOf("low", "claude-opus-5", conversation())).thinking).toBeDefined();
  });
});

test("unset fields of a prompt are not sent", async () => {
  const { body } = await sent(PROMPT);
  expect(Object.keys(body).sort()).toEqual(["max_tokens", "messages", "model", "stream"]);
  expect((await sent({ ...PROMPT, temperature: 0 })).body.temperature).toBe(0);
});

test("the key and the API version are sent as headers", async () => {
  const { headers } = await sent(PROMPT, { apiKeyEnv: "KEY" }, { KEY: "the-key" });
  expect(headers).toMatchObject({ "x-api-key": "the-key", "anthropic-version": "2023-06-01" });
  expect(headers.authorization).toBeUndefined();
});

test("a base URL may omit the version", async () => {
  await sent(PROMPT, { baseUrl: fake.baseUrl.replace("/v1", "") });
});

test("white space of more than 512 characters is content: it is not searched for other characters", () => {
  const turns = (characters: number) => turnsOf([{ role: "user", content: "\n".repeat(characters) }]);
  expect(turns(512)).toHaveLength(0);
  expect(turns(513)).toHaveLength(1);
});
