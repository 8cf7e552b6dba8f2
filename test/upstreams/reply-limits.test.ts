import { describe, expect, test } from "vitest";
import { checkConversation } from "../../src/generations/check-conversation.ts";
import { anthropicDialect } from "../../src/upstreams/anthropic/dialect.ts";
import { createOpenaiDialect } from "../../src/upstreams/openai/dialect.ts";
import { openaiResponsesDialect } from "../../src/upstreams/openai-responses/dialect.ts";
import { replyOf } from "./support.ts";

/** More than every limit on a message, which are those of requests. */
const MANY = 1_000;
const LONG = "x".repeat(10_000);
const MAX_TOKENS = 32_000;

const openai = createOpenaiDialect({ baseUrl: "http://127.0.0.1" });
const chunk = (delta: object) => ({ choices: [{ index: 0, delta }] });
const chatCall = (i: number, name: string) =>
  chunk({ tool_calls: [{ index: i, id: `call_${i}`, function: { name, arguments: '{"a":1}' } }] });
const chatEnd = [{ choices: [{ index: 0, delta: {}, finish_reason: "stop" }] }, "[DONE]"];

const item = (i: number, value: object) => [
  { type: "response.output_item.added", output_index: i, item: value },
  { type: "response.output_item.done", output_index: i, item: value },
];
const responseCall = (i: number, name: string) =>
  item(i, { type: "function_call", call_id: `call_${i}`, name, arguments: '{"a":1}' });
const encrypted = (i: number, text: string) =>
  item(i, { type: "reasoning", id: `rs_${i}`, summary: [], encrypted_content: text });

const block = (i: number, content_block: object) => [
  { type: "content_block_start", index: i, content_block },
  { type: "content_block_stop", index: i },
];
const use = (i: number, name: string) => block(i, { type: "tool_use", id: `toolu_${i}`, name, input: { a: 1 } });
const thinking = (i: number, signature: string) => block(i, { type: "thinking", thinking: "Hm.", signature });
const messageEnd = [{ type: "message_delta", delta: { stop_reason: "end_turn" } }, { type: "message_stop" }];

const many = (make: (i: number) => object | object[]) => Array.from({ length: MANY }, (_, i) => make(i)).flat();

describe.each([
  ["a chat completion with too many calls", openai, [...many((i) => chatCall(i, "f")), ...chatEnd], 256],
  ["a response with too many calls", openaiResponsesDialect, many((i) => responseCall(i, "f")), 256],
  ["a message with too many calls", anthropicDialect, [...many((i) => use(i, "f")), ...messageEnd], 256],
  ["a chat completion with a long name", openai, [chatCall(0, "f"), chatCall(1, LONG), ...chatEnd], 1],
  ["a response with a long name", openaiResponsesDialect, [responseCall(0, "f"), responseCall(1, LONG)].flat(), 1],
  ["a message with a long name", anthropicDialect, [use(0, "f"), use(1, LONG), messageEnd].flat(), 1],
  ["a chat completion with too much text", openai, [chatCall(0, "f"), ...many(() => chunk({ content: LONG }))], 1],
  ["a response with long encrypted reasoning", openaiResponsesDialect, many((i) => encrypted(i, LONG)), 0],
  ["a message with long signatures", anthropicDialect, many((i) => thinking(i, LONG)), 0],
  ["a response with many blocks of reasoning", openaiResponsesDialect, many((i) => encrypted(i, "x")), 0],
  ["a message with many blocks of thinking", anthropicDialect, many((i) => thinking(i, "x")), 0],
] as const)("%s", (_, dialect, events, calls) => {
  test("ends at a limit, and a request can send it back", async () => {
    const { output, done } = replyOf(dialect, events, MAX_TOKENS);
    const { text, reasoning, toolCalls } = output;
    expect(done).toMatchObject({ finishReason: "length", usage: undefined });
    expect(toolCalls).toHaveLength(calls);
    const reply = { role: "assistant" as const, content: text, reasoning, toolCalls };
    await checkConversation({ format: "native", messages: [reply] });
  });
});

test("a reply with as much as a message can have is complete", () => {
  const events = [
    ...many((i) => thinking(i, "x")).slice(0, 512),
    ...Array.from({ length: 256 }, (_, i) => use(i, "f".repeat(256))).flat(),
    ...messageEnd,
  ];
  const { output, done } = replyOf(anthropicDialect, events, MAX_TOKENS);
  expect(done?.finishReason).toBe("tool_calls");
  expect([output.toolCalls.length, output.reasoning.length]).toEqual([256, 256]);
});

const USAGE = { inputTokens: 11, outputTokens: 31_000 };
const chatUsage = { prompt_tokens: USAGE.inputTokens, completion_tokens: USAGE.outputTokens };
const apiUsage = { input_tokens: USAGE.inputTokens, output_tokens: USAGE.outputTokens };
const chatReply = (message: object) => ({
  stream: [chunk(message), ...chatEnd.slice(0, 1), { choices: [], usage: chatUsage }, "[DONE]"],
  whole: { choices: [{ index: 0, message, finish_reason: "stop" }], usage: chatUsage },
});
const response = (output: object) => ({ status: "completed", output: [output], usage: apiUsage });
const responseReply = (output: object, deltas: object[]) => ({
  stream: [
    { type: "response.output_item.added", output_index: 0, item: { ...output, arguments: "", summary: [] } },
    ...deltas,
    { type: "response.output_item.done", output_index: 0, item: output },
    { type: "response.completed", response: response(output) },
  ],
  whole: response(output),
});
const messageReply = (content: object, delta: object) => ({
  stream: [
    { type: "content_block_start", index: 0, content_block: { ...content, input: {}, thinking: "" } },
    { type: "content_block_delta", index: 0, delta },
    { type: "content_block_stop", index: 0 },
    { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: apiUsage },
    { type: "message_stop" },
  ],
  whole: { type: "message", content: [content], stop_reason: "end_turn", usage: apiUsage },
});

const HUGE = "x".repeat(500_000);
const input = { a: HUGE };
const args = JSON.stringify(input);
const HEAD = { id: "call_1", name: "f" };
const summary = [{ type: "summary_text", text: HUGE }];
/** The first 400,000 characters, which include the id and the name of a call. */
const CUT_CALL = { ...HEAD, arguments: args.slice(0, 400_000 - "call_1f".length) };
const CUT_REASONING = { text: HUGE.slice(0, 400_000), signature: undefined };

describe.each([
  [
    "a call of a chat completion",
    openai,
    chatReply({ tool_calls: [{ index: 0, id: HEAD.id, function: { name: "f", arguments: args } }] }),
    { toolCalls: [CUT_CALL] },
  ],
  ["the reasoning of a chat completion", openai, chatReply({ reasoning_content: HUGE }), { reasoning: [CUT_REASONING] }],
  [
    "a call of a response",
    openaiResponsesDialect,
    responseReply({ type: "function_call", call_id: HEAD.id, name: "f", arguments: args }, [
      { type: "response.function_call_arguments.delta", output_index: 0, delta: args },
    ]),
    { toolCalls: [CUT_CALL] },
  ],
  [
    "the reasoning of a response",
    openaiResponsesDialect,
    responseReply({ type: "reasoning", id: "rs_1", summary }, [
      { type: "response.reasoning_summary_text.delta", output_index: 0, delta: HUGE },
    ]),
    { reasoning: [CUT_REASONING] },
  ],
  [
    "a call of a message",
    anthropicDialect,
    messageReply({ type: "tool_use", ...HEAD, input }, { type: "input_json_delta", partial_json: args }),
    { toolCalls: [CUT_CALL] },
  ],
  [
    "the thinking of a message",
    anthropicDialect,
    messageReply({ type: "thinking", thinking: HUGE, signature: "s" }, { type: "thinking_delta", thinking: HUGE }),
    { reasoning: [CUT_REASONING] },
  ],
] as const)("%s that arrives in one piece", (_, dialect, { stream, whole }, output) => {
  test.each([
    ["in a stream", stream],
    ["in a whole reply", { whole }],
  ])("is cut at the limit and charged as reported, %s", (_form, events) => {
    const reply = replyOf(dialect, events, MAX_TOKENS);
    expect(reply.output).toMatchObject(output);
    expect(reply.done).toMatchObject({ finishReason: "length", usage: { input: 11, output: 31_000 } });
  });
});
