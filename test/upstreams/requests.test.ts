import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { RemoteSettings } from "../../src/domain/model.ts";
import type { Prompt, Reasoning, ReasoningEffort, ToolChoice } from "../../src/domain/prompt.ts";
import { createOpenaiDialect } from "../../src/upstreams/openai/openai-dialect.ts";
import { type FakeCall, FakeUpstream } from "../support/fake-upstreams/fake-upstream.ts";
import { anthropicWire } from "../support/fake-upstreams/wire.ts";
import { promptOf } from "../support/samples.ts";
import { NEVER, openRemote, PROMPT, read } from "./support.ts";

const CONVERSATION: Prompt = {
  messages: [
    { role: "system", content: "Be brief." },
    { role: "user", content: "One." },
    { role: "user", content: "Two." },
    { role: "system", content: "Be kind." },
    { role: "user", content: "Three." },
    { role: "assistant", content: "Yes?" },
    { role: "user", content: "Four." },
  ],
  maxTokens: 7,
  temperature: 1.5,
  options: {},
  stop: ["END", "\n"],
};

/** A conversation with everything besides text. */
const AGENT: Prompt = promptOf({
  messages: [
    {
      role: "user",
      content: [
        { kind: "text", text: "Look." },
        { kind: "image", image: { kind: "url", url: "https://example.com/a.png" }, detail: "low" },
        { kind: "image", image: { kind: "data", mediaType: "image/png", base64: "AAAA" }, detail: undefined },
      ],
    },
    {
      role: "assistant",
      content: "",
      reasoning: [{ text: "Hm.", signature: "sig", encrypted: undefined }],
      toolCalls: [{ id: "c1", name: "look", arguments: '{"at":1}' }],
    },
    { role: "tool", toolCallId: "c1", content: "nothing" },
    { role: "assistant", content: "Nothing." },
    { role: "user", content: "Again." },
  ],
  options: {
    topP: 0.5,
    seed: 0,
    presencePenalty: 1,
    frequencyPenalty: -1,
    reasoningEffort: "low",
    tools: [
      { name: "look", description: "Looks.", parameters: { type: "object" }, strict: true },
      { name: "wait", description: undefined, parameters: undefined, strict: undefined },
    ],
    toolChoice: { kind: "tool", name: "look" },
    parallelToolCalls: false,
    responseFormat: { kind: "json_schema", name: "s", schema: { type: "object" }, strict: undefined },
  },
});

let fake: FakeUpstream;

/** The request that the upstream receives. */
async function sent(prompt: Prompt, options: Partial<RemoteSettings> = {}, env = {}) {
  const upstream = openRemote(fake.settings(options), env);
  expect((await read(upstream.generate(prompt, NEVER))).failure).toBeUndefined();
  await upstream.close();
  return fake.calls.at(-1) as FakeCall;
}

describe("openai", () => {
  beforeAll(async () => {
    fake = await FakeUpstream.start();
  });
  afterAll(() => fake.stop());

  test("a prompt is sent with all its fields, streaming and usage", async () => {
    const { body } = await sent(CONVERSATION);
    expect(body).toEqual({
      model: "fake-model",
      messages: CONVERSATION.messages,
      max_tokens: 7,
      temperature: 1.5,
      stop: ["END", "\n"],
      stream: true,
      stream_options: { include_usage: true },
    });
  });

  test("tools, calls, results, images and options are sent", async () => {
    const { body } = await sent(AGENT);
    expect(body).toEqual({
      model: "fake-model",
      messages: [
        {
          role: "user",
          content: [
            { type: "text", text: "Look." },
            { type: "image_url", image_url: { url: "https://example.com/a.png", detail: "low" } },
            { type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } },
          ],
        },
        {
          role: "assistant",
          tool_calls: [{ id: "c1", type: "function", function: { name: "look", arguments: '{"at":1}' } }],
        },
        { role: "tool", tool_call_id: "c1", content: "nothing" },
        { role: "assistant", content: "Nothing." },
        { role: "user", content: "Again." },
      ],
      max_tokens: 100,
      top_p: 0.5,
      seed: 0,
      presence_penalty: 1,
      frequency_penalty: -1,
      reasoning_effort: "low",
      tools: [
        {
          type: "function",
          function: { name: "look", description: "Looks.", parameters: { type: "object" }, strict: true },
        },
        { type: "function", function: { name: "wait" } },
      ],
      tool_choice: { type: "function", function: { name: "look" } },
      parallel_tool_calls: false,
      response_format: { type: "json_schema", json_schema: { name: "s", schema: { type: "object" } } },
      stream: true,
      stream_options: { include_usage: true },
    });
  });

  test("without tools, fields about tools are not sent", async () => {
    const { body } = await sent({
      ...PROMPT,
      options: { toolChoice: { kind: "none" }, parallelToolCalls: true },
    });
    expect(Object.keys(body)).not.toContain("tool_choice");
    expect(Object.keys(body)).not.toContain("parallel_tool_calls");
  });

  test.each([
    [{ kind: "json" } as const, { type: "json_object" }],
    [
      { kind: "json_schema", name: "n", schema: {}, strict: false } as const,
      { type: "json_schema", json_schema: { name: "n", schema: {}, strict: false } },
    ],
  ])("the format of the reply is sent", async (responseFormat, expected) => {
    expect((await sent({ ...PROMPT, options: { responseFormat } })).body.response_format).toEqual(expected);
  });

  test("unset fields of a prompt are not sent", async () => {
    const { body } = await sent(PROMPT);
    expect(Object.keys(body).sort()).toEqual(["max_tokens", "messages", "model", "stream", "stream_options"]);
  });

  test("the key is sent if it is configured", async () => {
    expect((await sent(PROMPT)).headers.authorization).toBeUndefined();
    const { headers } = await sent(PROMPT, { apiKeyEnv: "KEY" }, { KEY: " the-key\n" });
    expect(headers).toMatchObject({ authorization: "Bearer the-key", "accept-encoding": "identity" });
  });

  test("a missing or malformed key is rejected when the upstream opens, without quoting it", () => {
    const open = (KEY: string) => openRemote(fake.settings({ apiKeyEnv: "KEY" }), { KEY });
    for (const key of ["", "  ", "two words", "a\nb", "ключ"]) {
      expect(() => open(key)).toThrow(/^KEY (is not set|contains characters)/);
    }
  });

  test("a base URL may end with a slash and have a query", async () => {
    await sent(PROMPT, { baseUrl: `${fake.baseUrl}/` });
    await sent(PROMPT, { baseUrl: `${fake.baseUrl}?api-version=1` });
  });

  test("OpenAI and Azure get max_completion_tokens", () => {
    const names = [
      "https://api.openai.com/v1",
      "https://x.openai.azure.com/openai/v1",
      "https://notopenai.com/v1",
    ].map((baseUrl) =>
      Object.keys(createOpenaiDialect({ baseUrl }).body(PROMPT, "m")).filter((name) =>
        name.startsWith("max"),
      ),
    );
    expect(names).toEqual([["max_completion_tokens"], ["max_completion_tokens"], ["max_tokens"]]);
  });
});

describe("anthropic", () => {
  beforeAll(async () => {
    fake = await FakeUpstream.start({ wire: anthropicWire });
  });
  afterAll(() => fake.stop());

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
      stop_sequences: ["END", "\n"],
      stream: true,
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
    const image = {
      kind: "image",
      image: { kind: "url", url: "https://example.com/a.png" },
      detail: "high",
    } as const;
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

  test("only reasoning that the API can check is sent", async () => {
    const reasoning = [
      { text: "signed", signature: "s", encrypted: undefined },
      { text: "", signature: undefined, encrypted: "e" },
      { text: "of another server", signature: undefined, encrypted: undefined },
      { text: "of another server", signature: "rs_1", encrypted: "e" },
    ];
    const { body } = await sent(
      promptOf({
        messages: [...PROMPT.messages, { role: "assistant", content: "Yes.", reasoning }, ...PROMPT.messages],
      }),
    );
    expect((body.messages as { content: unknown }[])[1]?.content).toEqual([
      { type: "thinking", thinking: "signed", signature: "s" },
      { type: "redacted_thinking", data: "e" },
      { type: "text", text: "Yes." },
    ]);
  });

  describe("reasoning_effort", () => {
    const fieldsOf = async (
      reasoningEffort: ReasoningEffort,
      model: string,
      prompt: Partial<Prompt> = {},
    ) => {
      const { thinking, output_config } = (
        await sent(promptOf({ maxTokens: 10_000, ...prompt, options: { reasoningEffort } }), { model })
      ).body;
      return { thinking, output_config };
    };

    test("makes newer Claude models think as much as they need", async () => {
      for (const model of ["claude-opus-5-5", "claude-sonnet-4-6", "us.anthropic.claude-opus-4-7-v1"]) {
        expect(await fieldsOf("minimal", model)).toEqual({
          thinking: { type: "adaptive" },
          output_config: { effort: "low" },
        });
        expect(await fieldsOf("none", model)).toEqual({
          thinking: { type: "disabled" },
          output_config: undefined,
        });
      }
    });

    test("gives older Claude models, and other models, a budget below max_tokens", async () => {
      for (const model of [
        "claude-sonnet-4-5-20250929",
        "claude-opus-4-20250514",
        "claude-3-7-sonnet-latest",
        "kimi-k2",
      ]) {
        const budget = async (effort: ReasoningEffort, maxTokens: number) =>
          (await fieldsOf(effort, model, { maxTokens })).thinking;
        expect(await budget("medium", 10_000)).toEqual({ type: "enabled", budget_tokens: 5_000 });
        expect(await budget("low", 1_025)).toEqual({ type: "enabled", budget_tokens: 1_024 });
        expect(await budget("high", 100_000)).toEqual({ type: "enabled", budget_tokens: 32_000 });
        expect(await budget("high", 1_024)).toBeUndefined();
        expect(await budget("none", 10_000)).toBeUndefined();
      }
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
});
