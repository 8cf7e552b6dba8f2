import { describe, expect, test } from "vitest";
import { checkConversation } from "../../src/domain/conversation.ts";
import { anthropicDialect } from "../../src/upstreams/anthropic/anthropic-dialect.ts";
import { createOpenaiDialect } from "../../src/upstreams/openai/openai-dialect.ts";
import { openaiResponsesDialect } from "../../src/upstreams/openai-responses/openai-responses-dialect.ts";
import { replyOf } from "./support.ts";

/** More than every limit on a message, which are those of requests. */
const MANY = 1_000;
const LONG = "x".repeat(100_000);
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
const use = (i: number, name: string) =>
  block(i, { type: "tool_use", id: `toolu_${i}`, name, input: { a: 1 } });
const thinking = (i: number, signature: string) => block(i, { type: "thinking", thinking: "Hm.", signature });
const messageEnd = [{ type: "message_delta", delta: { stop_reason: "end_turn" } }, { type: "message_stop" }];

const many = (make: (i: number) => object | object[]) =>
  Array.from({ length: MANY }, (_, i) => make(i)).flat();

describe.each([
  ["a chat completion with too many calls", openai, [...many((i) => chatCall(i, "f")), ...chatEnd], 256],
  ["a response with too many calls", openaiResponsesDialect, many((i) => responseCall(i, "f")), 256],
  ["a message with too many calls", anthropicDialect, [...many((i) => use(i, "f")), ...messageEnd], 256],
  ["a chat completion with a long name", openai, [chatCall(0, "f"), chatCall(1, LONG), ...chatEnd], 1],
  [
    "a response with a long name",
    openaiResponsesDialect,
    [responseCall(0, "f"), responseCall(1, LONG)].flat(),
    1,
  ],
  ["a message with a long name", anthropicDialect, [use(0, "f"), use(1, LONG), messageEnd].flat(), 1],
  [
    "a chat completion with too much text",
    openai,
    [chatCall(0, "f"), ...many(() => chunk({ content: LONG }))],
    1,
  ],
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
  expect({ calls: output.toolCalls.length, blocks: output.reasoning.length }).toEqual({
    calls: 256,
    blocks: 256,
  });
});
