import { describe, expect, test } from "vitest";
import { anthropicDialect } from "../../src/upstreams/anthropic/dialect.ts";
import { NO_USAGE } from "../support/no-usage.ts";
import { replyOf } from "./support.ts";

const start = (index: number, content_block: object) => ({ type: "content_block_start", index, content_block });
const delta = (index: number, value: object) => ({ type: "content_block_delta", index, delta: value });
const stop = (index: number) => ({ type: "content_block_stop", index });
const json = (index: number, partial_json: unknown) => delta(index, { type: "input_json_delta", partial_json });

/** A reply of these blocks, with a stop reason and the usual end. */
function streamed(blocks: readonly object[], reason = "end_turn", usage: object = { output_tokens: 5 }, first = {}) {
  return replyOf(anthropicDialect, [
    { type: "message_start", message: { usage: { input_tokens: 10, output_tokens: 1, ...first } } },
    ...blocks,
    { type: "message_delta", delta: { stop_reason: reason, stop_sequence: null }, usage },
    { type: "message_stop" },
  ]);
}

describe("tool calls", () => {
  test("are read from their blocks, between text", () => {
    const { output, deltas, done } = streamed(
      [
        start(0, { type: "text", text: "" }),
        delta(0, { type: "text_delta", text: "One moment." }),
        stop(0),
        start(1, { type: "tool_use", id: "toolu_1", name: "f", input: {} }),
        json(1, ""),
        json(1, '{"a":'),
        json(1, "1}"),
        stop(1),
        start(2, { type: "tool_use", id: "toolu_2", name: "g", input: {} }),
        stop(2),
      ],
      "tool_use",
    );
    expect(output).toEqual({
      text: "One moment.",
      reasoning: [],
      toolCalls: [
        { id: "toolu_1", name: "f", arguments: '{"a":1}' },
        { id: "toolu_2", name: "g", arguments: "{}" },
      ],
    });
    expect(deltas[1]).toMatchObject({ toolCall: { index: 0, id: "toolu_1", name: "f", arguments: "" } });
    expect(done?.finishReason).toBe("tool_calls");
  });

  test("of interleaved blocks, and with their input at the start, are read too", () => {
    const { output } = streamed([
      start(4, { type: "tool_use", id: "a", name: "f", input: {} }),
      start(2, { type: "tool_use", id: "b", name: "g", input: { x: 1 } }),
      json(4, "{"),
      json(4, "}"),
    ]);
    expect(output.toolCalls).toEqual([
      { id: "a", name: "f", arguments: "{}" },
      { id: "b", name: "g", arguments: '{"x":1}' },
    ]);
  });

  test("of tools that run at the upstream are not part of the reply", () => {
    const { output } = streamed([
      start(0, { type: "server_tool_use", id: "s", name: "web_search", input: {} }),
      json(0, '{"query":"x"}'),
      stop(0),
      start(1, { type: "web_search_tool_result", tool_use_id: "s", content: [] }),
      stop(1),
    ]);
    expect(output).toEqual({ text: "", reasoning: [], toolCalls: [] });
  });

  test("of two blocks with the same index are a failure", () => {
    const block = (id: string) => start(0, { type: "tool_use", id, name: "f", input: {} });
    expect(() => streamed([block("a"), stop(0), block("b")])).toThrow("two blocks have the same index");
  });

  test("without a name are a failure", () => {
    expect(() => streamed([start(0, { type: "tool_use", id: "a" })])).toThrow("a tool call has no name");
  });
});

describe("reasoning", () => {
  test("is read with its signature, and redacted reasoning as encrypted", () => {
    const { output } = streamed([
      start(0, { type: "thinking", thinking: "", signature: "" }),
      delta(0, { type: "thinking_delta", thinking: "Let me " }),
      delta(0, { type: "thinking_delta", thinking: "think." }),
      delta(0, { type: "signature_delta", signature: "c2ln" }),
      stop(0),
      start(1, { type: "redacted_thinking", data: "ZGF0YQ==" }),
      stop(1),
      start(2, { type: "thinking", thinking: "", signature: "" }),
      delta(2, { type: "signature_delta", signature: "b21pdHRlZA==" }),
      stop(2),
      start(3, { type: "text", text: "Yes." }),
      stop(3),
    ]);
    expect(output.reasoning).toEqual([
      { text: "Let me think.", signature: "c2ln", encrypted: undefined },
      { text: "", signature: undefined, encrypted: "ZGF0YQ==" },
      { text: "", signature: "b21pdHRlZA==", encrypted: undefined },
    ]);
    expect(output.text).toBe("Yes.");
  });

  test("a signature is read although its block has no end", () => {
    const { output } = streamed([
      start(0, { type: "thinking", thinking: "a" }),
      delta(0, { type: "signature_delta", signature: "s" }),
    ]);
    expect(output.reasoning).toEqual([{ text: "a", signature: "s", encrypted: undefined }]);
  });

  test("long signatures do not count as tokens, but have a limit", () => {
    const events = (length: number) => [
      start(0, { type: "thinking", thinking: "" }),
      delta(0, { type: "signature_delta", signature: "x".repeat(length) }),
      stop(0),
      delta(1, { type: "text_delta", text: "Yes." }),
      { type: "message_delta", delta: { stop_reason: "end_turn" } },
    ];
    const last = { type: "message_stop" };
    const of = (length: number) => replyOf(anthropicDialect, [...events(length), last], 10);
    expect(of(60_000)).toMatchObject({ output: { text: "Yes." }, done: { finishReason: "stop" } });
    expect(of(70_000)).toMatchObject({ output: { text: "", reasoning: [] }, done: { finishReason: "length" } });
  });
});

test("a reply that is not streamed has all of it", () => {
  const whole = {
    type: "message",
    content: [
      { type: "thinking", thinking: "Hm.", signature: "s" },
      { type: "redacted_thinking", data: "d" },
      { type: "text", text: "Yes." },
      { type: "tool_use", id: "a", name: "f", input: { x: [1] } },
      null,
    ],
    stop_reason: "tool_use",
    usage: { input_tokens: 3, output_tokens: 4 },
  };
  expect(replyOf(anthropicDialect, { whole })).toMatchObject({
    output: {
      text: "Yes.",
      reasoning: [
        { text: "Hm.", signature: "s" },
        { text: "", encrypted: "d" },
      ],
      toolCalls: [{ id: "a", name: "f", arguments: '{"x":[1]}' }],
    },
    done: { finishReason: "tool_calls", usage: { input: 3, output: 4 } },
  });
});

test.each([
  ["end_turn", "stop"],
  ["stop_sequence", "stop"],
  ["pause_turn", "stop"],
  ["max_tokens", "length"],
  ["model_context_window_exceeded", "length"],
  ["refusal", "content_filter"],
])("the stop reason %s is %s", (sent, expected) => {
  expect(streamed([delta(0, { type: "text_delta", text: "x" })], sent).done?.finishReason).toBe(expected);
});

describe("usage", () => {
  const usage = (last: object, first: object = {}) => streamed([], "end_turn", last, first).done?.usage;

  test("adds cached tokens to the input, and reads the tokens of reasoning", () => {
    const first = {
      cache_read_input_tokens: 100,
      cache_creation_input_tokens: 7,
      cache_creation: { ephemeral_5m_input_tokens: 3, ephemeral_1h_input_tokens: 4 },
    };
    const counts = { input: 10, cachedInput: 100, cacheWrite: 7, cacheWrite1h: 4, output: 3, reasoning: 2 };
    expect(usage({ output_tokens: 5, output_tokens_details: { thinking_tokens: 2 } }, first)).toEqual({ ...NO_USAGE, ...counts });
  });

  test("the totals at the end replace those of the start; null keeps them", () => {
    const first = { cache_read_input_tokens: 100, cache_creation_input_tokens: 7 };
    const last = { input_tokens: 20, cache_read_input_tokens: null, output_tokens: 5 };
    expect(usage(last, first)).toMatchObject({ input: 20, cachedInput: 100, cacheWrite: 7 });
    const other = { input_tokens: null, cache_read_input_tokens: 1, output_tokens: 5 };
    expect(usage(other, first)).toMatchObject({ input: 10, cachedInput: 1 });
  });

  test("adds the tokens of compactions, which the totals do not include", () => {
    const iterations = [
      { type: "compaction", input_tokens: 50, cache_read_input_tokens: 5, output_tokens: 6 },
      { type: "message", input_tokens: 10, output_tokens: 5 },
      null,
    ];
    expect(usage({ output_tokens: 5, iterations })).toMatchObject({ input: 65, output: 11 });
    expect(usage({ output_tokens: 5, iterations: [{ type: "compaction", output_tokens: -1 }] })).toBeUndefined();
  });

  test("is unknown without a valid count at the end", () => {
    expect(usage({})).toBeUndefined();
    expect(usage({ output_tokens: 5, input_tokens: -1 })).toBeUndefined();
    expect(usage({ output_tokens: 5, cache_read_input_tokens: "3" })).toBeUndefined();
  });
});
