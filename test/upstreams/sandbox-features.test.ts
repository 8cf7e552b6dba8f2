import { describe, expect, test } from "vitest";
import { OutputBuilder } from "../../src/domain/output.ts";
import { inputTokensOf, outputTokensOf } from "../../src/domain/price.ts";
import type { Prompt, PromptMessage, PromptOptions, Tool } from "../../src/domain/prompt.ts";
import { SandboxUpstream } from "../../src/upstreams/sandbox/sandbox.ts";
import type { UpstreamEnd, UpstreamEvent } from "../../src/upstreams/upstream.ts";
import { promptOf } from "../support/samples.ts";
import { NEVER } from "./support.ts";

const INPUT_TOKENS = 10;

const sandbox = new SandboxUpstream({
  settings: { kind: "sandbox", delayMs: 0 },
  countPrompt: () => Promise.resolve(INPUT_TOKENS),
});

const WEATHER: Tool = {
  name: "weather",
  description: undefined,
  parameters: {
    type: "object",
    properties: { city: { type: "string" }, unit: { enum: ["celsius", "fahrenheit"] } },
    required: ["city", "unit"],
    additionalProperties: false,
  },
  strict: true,
};
const CLOCK: Tool = { name: "clock", description: undefined, parameters: undefined, strict: undefined };
const TOOLS = [WEATHER, CLOCK];

function prompt(content: string, options: PromptOptions = {}, values: Partial<Prompt> = {}): Prompt {
  return promptOf({ messages: [{ role: "user", content }], maxTokens: 1_000, options, ...values });
}

async function reply(asked: Prompt) {
  const builder = new OutputBuilder();
  const events: UpstreamEvent[] = [];
  let end: UpstreamEnd | undefined;
  for await (const event of sandbox.generate(asked, NEVER)) {
    events.push(event);
    if (event.kind === "done") end = event;
    else builder.append(event);
  }
  if (!end?.usage) throw new Error("the reply has no end");
  return { events, ...builder.output, finishReason: end.finishReason, usage: end.usage };
}

describe("a tool is called", () => {
  test.each<[string, string, PromptOptions, string[]]>([
    ["by the directive", "[[tool]] hello", { tools: TOOLS }, ["weather"]],
    ["by the directive with a name", "[[tool=clock]]", { tools: TOOLS }, ["clock"]],
    ["by the directive with a number", "[[tools=3]]", { tools: TOOLS }, ["weather", "clock", "weather"]],
    ["by a choice that requires one", "hello", { tools: TOOLS, toolChoice: { kind: "required" } }, ["weather"]],
    ["by a choice with a name", "hello", { tools: TOOLS, toolChoice: { kind: "tool", name: "clock" } }, ["clock"]],
    ["once without parallel calls", "[[tools=3]]", { tools: TOOLS, parallelToolCalls: false }, ["weather"]],
    ["never without a reason", "hello", { tools: TOOLS }, []],
    ["never without tools", "[[tool]]", {}, []],
    ["never against the choice", "[[tool]]", { tools: TOOLS, toolChoice: { kind: "none" } }, []],
    ["never under an unknown name", "[[tool=unknown]]", { tools: TOOLS }, []],
  ])("%s", async (_, content, options, names) => {
    const { toolCalls, text, finishReason } = await reply(prompt(content, options));
    expect(toolCalls.map(({ name }) => name)).toEqual(names);
    expect(new Set(toolCalls.map(({ id }) => id)).size).toBe(names.length);
    expect(finishReason).toBe(names.length > 0 ? "tool_calls" : "stop");
    expect(text === "").toBe(names.length > 0);
  });

  test("with arguments that match its schema, in pieces", async () => {
    const { toolCalls, events, usage } = await reply(prompt("[[tools=2]]", { tools: TOOLS }));
    expect(toolCalls.map((call) => JSON.parse(call.arguments))).toEqual([{ city: "city 1", unit: "celsius" }, {}]);
    const pieces = events.filter((event) => event.kind === "tool_call").map(({ toolCall }) => toolCall);
    expect(pieces).toHaveLength(4);
    expect(pieces.filter(({ id, name }) => id !== "" && name !== "").map(({ index }) => index)).toEqual([0, 1]);
    expect(pieces.every((piece) => piece.arguments !== "")).toBe(true);
    expect(usage.output).toBe(Math.ceil('{"city":"city 1","unit":"celsius"}'.length / 4) + 1);
  });

  test("after a text, if the directive gives its length", async () => {
    const { text, toolCalls } = await reply(prompt("[[tokens=3 tool]]", { tools: TOOLS }));
    expect(text).toBe("This is a");
    expect(toolCalls).toHaveLength(1);
  });

  test("with other ids in the next turn", async () => {
    const first = await reply(prompt("[[tool]]", { tools: TOOLS }));
    const messages: PromptMessage[] = [
      { role: "user", content: "[[tool]]" },
      { role: "assistant", content: "", toolCalls: first.toolCalls },
      { role: "tool", content: "22", toolCallId: first.toolCalls[0]?.id ?? "" },
      { role: "user", content: "[[tool]]" },
    ];
    const second = await reply(prompt("", { tools: TOOLS }, { messages }));
    expect(second.toolCalls[0]?.id).toMatch(/^call_\w+$/);
    expect(second.toolCalls[0]?.id).not.toBe(first.toolCalls[0]?.id);
  });

  test("by a directive in a later text part, before messages of other roles", async () => {
    const parts = ["<context>", "[[tool]] hello"].map((text) => ({ kind: "text" as const, text }));
    const messages: PromptMessage[] = [
      { role: "user", content: parts },
      { role: "system", content: "Be brief." },
    ];
    const { toolCalls } = await reply(prompt("", { tools: TOOLS }, { messages }));
    expect(toolCalls.map(({ name }) => name)).toEqual(["weather"]);
  });

  test("after results only if the choice requires one, and none for the second time", async () => {
    const messages: PromptMessage[] = [{ role: "user", content: "hello" }];
    const options: PromptOptions = { tools: TOOLS, toolChoice: { kind: "required" } };
    const called: (string | undefined)[] = [];
    for (let turn = 0; turn < 3; turn++) {
      const { toolCalls } = await reply(prompt("", options, { messages }));
      called.push(toolCalls[0]?.name);
      messages.push({ role: "assistant", content: "", toolCalls: [...toolCalls] });
      for (const { id } of toolCalls) messages.push({ role: "tool", content: "sunny", toolCallId: id });
    }
    expect(called).toEqual(["weather", "clock", undefined]);
  });

  test("but not after its result: a loop ends with a text", async () => {
    const call = { id: "call_1", name: "weather", arguments: "{}" };
    const messages: PromptMessage[] = [
      { role: "user", content: "[[tool]]" },
      { role: "assistant", content: "", toolCalls: [call] },
      { role: "tool", content: "22", toolCallId: "call_1" },
    ];
    expect(await reply(prompt("", { tools: TOOLS }, { messages }))).toMatchObject({ toolCalls: [], finishReason: "stop" });
  });
});

describe("max_tokens and stop", () => {
  test("max_tokens cuts the arguments of a call", async () => {
    const { toolCalls, finishReason, usage } = await reply(prompt("[[tools=2]]", { tools: TOOLS }, { maxTokens: 3 }));
    expect(toolCalls.map((call) => call.arguments)).toEqual(['{"city":"cit']);
    expect(finishReason).toBe("length");
    expect(usage.output).toBe(3);
  });

  test("max_tokens applies to reasoning and text together", async () => {
    const cut = await reply(prompt("[[reasoning=20 tokens=20]]", {}, { maxTokens: 30 }));
    expect(cut).toMatchObject({ finishReason: "length", usage: { reasoning: 20, output: 10 } });
    const within = await reply(prompt("[[reasoning=20 tokens=20]]", {}, { maxTokens: 10 }));
    expect(within).toMatchObject({ text: "", finishReason: "length", usage: { reasoning: 10, output: 0 } });
    expect(within.reasoning[0]?.signature).toBeUndefined();
  });

  test("stop ends JSON, but neither reasoning nor arguments", async () => {
    const stop = ["sandbox", "city"];
    const format: PromptOptions = { responseFormat: { kind: "json" } };
    const { text, finishReason, usage, reasoning } = await reply(prompt("[[reasoning=20]]", format, { stop }));
    expect(text).toBe('{"reply":"This is a reply of the ');
    expect(finishReason).toBe("stop");
    expect(usage).toMatchObject({ reasoning: 20, output: Math.ceil(text.length / 4) });
    expect(reasoning[0]?.text).toContain("sandbox");
    const called = await reply(prompt("[[tool]]", { tools: TOOLS }, { stop }));
    expect(called.toolCalls[0]?.arguments).toContain("city");
  });
});

describe("structured output", () => {
  test("json is an object", async () => {
    const { text } = await reply(prompt("hello", { responseFormat: { kind: "json" } }));
    expect(JSON.parse(text)).toEqual({ reply: expect.stringMatching(/^This is a reply/) });
  });

  test("json_schema is an instance", async () => {
    const { parameters: schema = {} } = WEATHER;
    const responseFormat = { kind: "json_schema", name: "weather", schema, strict: true } as const;
    const { text, events } = await reply(prompt("hello", { responseFormat }));
    expect(JSON.parse(text)).toEqual({ city: "city 1", unit: "celsius" });
    expect(events.length).toBeGreaterThan(2);
  });
});

describe("reasoning", () => {
  test("has the tokens of the directive and always the same signature", async () => {
    const { reasoning, text, usage } = await reply(prompt("[[reasoning=20]] hello"));
    expect(usage.reasoning).toBe(20);
    expect(outputTokensOf(usage)).toBe(20 + usage.output);
    expect(text).toMatch(/^This is a reply/);
    const signature = expect.stringMatching(/^sandbox_/);
    expect(reasoning).toEqual([{ text: expect.stringMatching(/^This is/), signature, encrypted: undefined }]);
    expect((await reply(prompt("[[reasoning=20]] hello"))).reasoning).toEqual(reasoning);
    const messages: PromptMessage[] = [
      { role: "user", content: "hello" },
      { role: "assistant", content: text, reasoning },
      { role: "user", content: "more" },
    ];
    expect((await reply(prompt("", {}, { messages }))).finishReason).toBe("stop");
  });

  test("follows the effort", async () => {
    const tokens = async (options: PromptOptions) => (await reply(prompt("hello", options))).usage.reasoning;
    expect(await tokens({ reasoningEffort: "none" })).toBe(0);
    expect(await tokens({ reasoningEffort: "low" })).toBeGreaterThan(0);
    expect(await tokens({ reasoningEffort: "high" })).toBeGreaterThan(await tokens({ reasoningEffort: "low" }));
  });
});

test("images count as input tokens", async () => {
  const image = { kind: "image", image: { kind: "url", url: "https://example.com/a.png" }, detail: undefined } as const;
  const content = [image, { kind: "text", text: "[[cached=4]] What is it?" }, image] as const;
  const { usage } = await reply(prompt("", {}, { messages: [{ role: "user", content }] }));
  expect(usage.imageTokens).toBe(2 * 85);
  expect(inputTokensOf(usage)).toBe(INPUT_TOKENS + 2 * 85);
  expect(usage.cachedInput).toBe(4);
});

test("cached tokens are at most the input", async () => {
  const { usage } = await reply(prompt("[[cached=6 cache_write=99999999]]"));
  expect(usage).toMatchObject({ input: 0, cachedInput: 6, cacheWrite: INPUT_TOKENS - 6 });
});

test("the directive of the last user message counts", async () => {
  const messages: PromptMessage[] = [
    { role: "user", content: "[[tokens=3]]" },
    { role: "assistant", content: "[[tokens=4]]" },
    { role: "user", content: "[[tokens=5]]" },
    { role: "system", content: "[[tokens=6]]" },
  ];
  expect((await reply(prompt("", {}, { messages }))).usage.output).toBe(5);
});

describe("a script", () => {
  const scriptOf = (turns: unknown) => `[[script=${Buffer.from(JSON.stringify(turns)).toString("base64url")}]]`;
  const LOOP = [
    { reasoning: "Which file?", text: "I read it.", calls: [{ name: "read", arguments: { path: "a" } }, { name: "list" }] },
    { calls: [{ name: "write", arguments: "not json" }] },
    { text: "Done: \u00fc\u{1f600}." },
  ];
  const user = (content: string): PromptMessage => ({ role: "user", content });
  const call: PromptMessage = {
    role: "assistant",
    content: "",
    toolCalls: [{ id: "c", name: "read", arguments: "{}" }],
  };
  const result: PromptMessage = { role: "tool", content: "text", toolCallId: "c" };
  const turnOf = async (...messages: PromptMessage[]) => {
    const { text, reasoning, toolCalls, finishReason } = await reply(promptOf({ messages, maxTokens: 1_000 }));
    const calls = toolCalls.map((one) => [one.name, one.arguments]);
    return { text, reasoning: reasoning.map((block) => block.text).join(""), calls, finishReason };
  };

  test("gives the reply of each turn, whatever the tools of the request, and repeats the last one", async () => {
    const asked = user(`Please ${scriptOf(LOOP)} now`);
    expect(await turnOf(asked)).toEqual({
      text: "I read it.",
      reasoning: "Which file?",
      calls: [
        ["read", '{"path":"a"}'],
        ["list", "{}"],
      ],
      finishReason: "tool_calls",
    });
    expect(await turnOf(asked, call, result)).toMatchObject({ text: "", calls: [["write", "not json"]] });
    const last = { text: "Done: \u00fc\u{1f600}.", reasoning: "", calls: [], finishReason: "stop" };
    expect(await turnOf(asked, call, result, call, result)).toEqual(last);
    expect(await turnOf(asked, call, result, call, result, call, user("more"))).toEqual(last);
  });

  test("counts consecutive messages of the assistant as one turn", async () => {
    expect(await turnOf(user(scriptOf(LOOP)), { role: "assistant", content: "a" }, call, result)).toMatchObject({
      calls: [["write", "not json"]],
    });
  });

  test("of the last message that has one applies", async () => {
    expect(await turnOf(user(scriptOf(LOOP)), user(scriptOf([{ text: "new" }])))).toMatchObject({ text: "new" });
  });

  test.each<[string, string]>([
    ["that is no JSON", "[[script=AAAA]]"],
    ["without a turn", scriptOf([])],
    ["with an unknown member", scriptOf([{ texts: "a" }])],
    ["with a call without a name", scriptOf([{ calls: [{ arguments: {} }] }])],
    ["that is not closed", scriptOf(LOOP).slice(0, -1)],
  ])("%s is ordinary text", async (_, text) => {
    expect((await turnOf(user(text))).text).toMatch(/^This is a reply of the sandbox/);
  });

  test("has one token for every 4 characters, and max_tokens cuts it", async () => {
    const { usage } = await reply(prompt(scriptOf([{ text: "12345678" }])));
    expect(outputTokensOf(usage)).toBe(2);
    const cut = await reply(prompt(scriptOf([{ text: "12345678" }]), {}, { maxTokens: 1 }));
    expect(cut).toMatchObject({ text: "1234", finishReason: "length" });
  });
});
