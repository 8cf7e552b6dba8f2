import { describe, expect, test } from "vitest";
import { OpenaiReader } from "../../src/upstreams/openai/reader.ts";
import { NO_USAGE } from "../support/no-usage.ts";
import { replyOf } from "./support.ts";

const openai = { createReader: (reply: ConstructorParameters<typeof OpenaiReader>[0]) => new OpenaiReader(reply) };

/** A reply of these deltas, with a finish reason and the usual end. */
function streamed(deltas: readonly object[], reason = "stop", maxTokens?: number) {
  const chunks = deltas.map((delta) => ({ choices: [{ index: 0, delta, finish_reason: null }] }));
  const end = [{ choices: [{ index: 0, delta: {}, finish_reason: reason }] }, "[DONE]"];
  return replyOf(openai, [...chunks, ...end], maxTokens);
}

const call = (index: unknown, id: unknown, name: unknown, text: unknown) => ({
  tool_calls: [{ index, id, type: "function", function: { name, arguments: text } }],
});

describe("tool calls", () => {
  test("parallel calls are read from interleaved pieces", () => {
    const { output, deltas, done } = streamed(
      [
        { content: "One moment." },
        call(0, "call_a", "get_time", ""),
        call(1, "call_b", "get_place", '{"ci'),
        call(0, undefined, undefined, '{"zone":'),
        call(1, undefined, undefined, 'ty":1}'),
        call(0, undefined, undefined, '"UTC"}'),
      ],
      "tool_calls",
    );
    expect(output).toEqual({
      text: "One moment.",
      reasoning: [],
      toolCalls: [
        { id: "call_a", name: "get_time", arguments: '{"zone":"UTC"}' },
        { id: "call_b", name: "get_place", arguments: '{"city":1}' },
      ],
    });
    expect(deltas[1]).toEqual({ kind: "tool_call", toolCall: { index: 0, id: "call_a", name: "get_time", arguments: "" } });
    expect(done?.finishReason).toBe("tool_calls");
  });

  test("numbers without order or with gaps become dense", () => {
    const { output, deltas } = streamed([call(7, "b", "second", "{}"), call(3, "a", "first", "{}")]);
    expect(output.toolCalls.map(({ name }) => name)).toEqual(["second", "first"]);
    expect(deltas.map((delta) => delta.kind === "tool_call" && delta.toolCall.index)).toEqual([0, 1]);
  });

  test("calls without a number, or with the same number, are distinguished by their ids", () => {
    for (const index of [undefined, 0, -1, "0", null]) {
      const { output } = streamed([
        call(index, "a", "first", '{"x"'),
        call(index, undefined, undefined, ":1}"),
        call(index, "b", "second", "{}"),
        call(index, undefined, undefined, " "),
      ]);
      expect(output.toolCalls).toEqual([
        { id: "a", name: "first", arguments: '{"x":1}' },
        { id: "b", name: "second", arguments: "{} " },
      ]);
    }
  });

  test("calls without numbers and ids are distinguished by their names", () => {
    const { output } = streamed([call(undefined, undefined, "f", "{}"), call(undefined, "", "f", "{}")]);
    expect(output.toolCalls.map((one) => one.arguments)).toEqual(["{}", "{}"]);
  });

  test("a missing, repeated or very long id is replaced by a unique one", () => {
    const { output } = streamed([
      call(0, undefined, "a", "{}"),
      call(1, "same", "b", "{}"),
      call(2, "same", "c", "{}"),
      call(3, "x".repeat(201), "d", "{}"),
      call(4, "", "e", "{}"),
    ]);
    const ids = output.toolCalls.map(({ id }) => id);
    expect(new Set(ids).size).toBe(5);
    expect(ids[1]).toBe("same");
    for (const id of [ids[0], ids[2], ids[3], ids[4]]) expect(id).toMatch(/^call_[0-9a-f]{32}$/);
  });

  test("a call begins when its name is known, with the arguments that came before", () => {
    const { output, deltas } = streamed([call(0, "a", null, '{"x":'), call(0, null, "late", "1"), call(0, null, null, "}")]);
    expect(output.toolCalls).toEqual([{ id: "a", name: "late", arguments: '{"x":1}' }]);
    expect(deltas.length).toBe(2);
  });

  test("a repeated name is not appended", () => {
    const { output } = streamed([call(0, "a", "f", "{"), call(0, "a", "f", "}")]);
    expect(output.toolCalls).toEqual([{ id: "a", name: "f", arguments: "{}" }]);
  });

  test("a call without arguments gets an empty object, even if the response ends after the finish reason", () => {
    const { output } = streamed([call(0, "a", "f", ""), call(1, "b", "g", null), call(2, "c", "h", undefined)]);
    expect(output.toolCalls.map((one) => one.arguments)).toEqual(["{}", "{}", "{}"]);
    const events = [{ choices: [{ delta: call(0, "a", "f", ""), finish_reason: "tool_calls" }] }];
    expect(replyOf(openai, events).output.toolCalls).toEqual([{ id: "a", name: "f", arguments: "{}" }]);
  });

  test("arguments that are an object are written as JSON; text that is not JSON stays as it is", () => {
    const { output } = streamed([call(0, "a", "f", { x: [1] }), call(1, "b", "g", "{not json")]);
    expect(output.toolCalls.map((one) => one.arguments)).toEqual(['{"x":[1]}', "{not json"]);
  });

  test("a call without a name is a failure", () => {
    expect(() => streamed([call(0, "a", undefined, "{}")])).toThrow("a tool call has no name");
    const endless = Array.from({ length: 100 }, () => call(0, "a", undefined, "x".repeat(1_000)));
    expect(() => streamed(endless, "stop", 10_000)).toThrow("a tool call has no name");
  });

  test("values of other types are ignored", () => {
    const { output } = streamed([
      { tool_calls: [null, 1, "x", [], {}, { function: null }] },
      { tool_calls: { 0: 1 } },
      { content: "fine" },
    ]);
    expect(output).toEqual({ text: "fine", reasoning: [], toolCalls: [] });
  });

  test("a reply that is not streamed has them too", () => {
    const message = {
      role: "assistant",
      content: null,
      tool_calls: [
        { id: "a", type: "function", function: { name: "f", arguments: "{}" } },
        { id: "b", type: "function", function: { name: "g", arguments: "" } },
      ],
    };
    const { output, done } = replyOf(openai, { whole: { choices: [{ message, finish_reason: "tool_calls" }] } });
    expect(output.toolCalls).toEqual([
      { id: "a", name: "f", arguments: "{}" },
      { id: "b", name: "g", arguments: "{}" },
    ]);
    expect(done?.finishReason).toBe("tool_calls");
  });

  test("a reply that is not streamed needs a message", () => {
    for (const choices of [undefined, [], [{}], [{ message: null, finish_reason: "stop" }]]) {
      expect(() => replyOf(openai, { whole: { choices, usage: { completion_tokens: 3 } } })).toThrow(
        "the response is not a chat completion",
      );
    }
  });

  test("arguments beyond max_tokens end the reply", () => {
    const pieces = Array.from({ length: 1_000 }, () => call(0, undefined, undefined, "x".repeat(100)));
    const { done, output } = streamed([call(0, "a", "f", ""), ...pieces], "tool_calls", 10);
    expect(done).toEqual({ kind: "done", finishReason: "length", usage: undefined });
    expect(output.toolCalls[0]?.arguments.length).toBeLessThan(1_024 + 1_280);
  });
});

describe("reasoning", () => {
  test.each(["reasoning_content", "reasoning", "thinking"])("is read from %s, before the text", (name) => {
    const { output } = streamed([{ [name]: "Let me " }, { [name]: "think." }, { content: "Yes." }]);
    expect(output.reasoning).toEqual([{ text: "Let me think.", signature: undefined, encrypted: undefined }]);
    expect(output.text).toBe("Yes.");
  });

  test("that is sent under two names is read once", () => {
    const { output } = streamed([
      { reasoning_content: "", reasoning: "Hm." },
      { reasoning_content: "a", reasoning: "a" },
    ]);
    expect(output.reasoning[0]?.text).toBe("Hm.a");
  });
});

test("a refusal is a text that ends with content_filter", () => {
  const { output, done } = streamed([{ refusal: "I cannot " }, { refusal: "help." }]);
  expect([output.text, done?.finishReason]).toEqual(["I cannot help.", "content_filter"]);
});

test("the text may be a list of parts", () => {
  const { output } = streamed([{ content: [{ type: "text", text: "a" }, { type: "other" }, null, { type: "text", text: "b" }] }]);
  expect(output.text).toBe("ab");
});

test.each([
  ["stop", "stop"],
  ["length", "length"],
  ["content_filter", "content_filter"],
  ["eos", "stop"],
  ["tool_calls", "stop"],
])("without tool calls, the finish reason %s is %s", (sent, expected) => {
  expect(streamed([{ content: "x" }], sent).done?.finishReason).toBe(expected);
});

test.each(["stop", "tool_calls", "function_call"])("with tool calls, the finish reason %s is tool_calls", (sent) => {
  expect(streamed([call(0, "a", "f", "{}")], sent).done?.finishReason).toBe("tool_calls");
});

test("usage has all its details; the last report counts, and a detail never exceeds its total", () => {
  const usage = (cached: number) => ({
    choices: [],
    usage: {
      prompt_tokens: 10,
      completion_tokens: 5,
      prompt_tokens_details: { cached_tokens: cached, cache_write_tokens: 2, image_tokens: 3 },
      completion_tokens_details: { reasoning_tokens: 4 },
    },
  });
  const of = (cached: number) => replyOf(openai, [usage(1), usage(cached), "[DONE]"]).done?.usage;
  expect(of(6)).toEqual({ ...NO_USAGE, input: 2, cachedInput: 6, cacheWrite: 2, output: 1, reasoning: 4, imageTokens: 3 });
  expect(of(11)).toMatchObject({ input: 0, cachedInput: 10, cacheWrite: 0 });
});
