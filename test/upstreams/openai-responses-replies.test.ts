import { describe, expect, test } from "vitest";
import { openaiResponsesDialect } from "../../src/upstreams/openai-responses/dialect.ts";
import { UpstreamFailure } from "../../src/upstreams/upstream-failure.ts";
import { NO_USAGE } from "../support/no-usage.ts";
import { replyOf } from "./support.ts";

const USAGE = {
  input_tokens: 10,
  input_tokens_details: { cached_tokens: 4, cache_write_tokens: 1 },
  output_tokens: 5,
  output_tokens_details: { reasoning_tokens: 2 },
  total_tokens: 15,
};

const event = (type: string, values: object) => ({ type: `response.${type}`, sequence_number: 1, ...values });
const added = (output_index: number, item: object) => event("output_item.added", { output_index, item });
const done = (output_index: number, item: object) => event("output_item.done", { output_index, item });
const argument = (output_index: number, delta: unknown) =>
  event("function_call_arguments.delta", { output_index, item_id: `fc_${output_index}`, delta });
const call = (id: string, name: string, text: string) =>
  ({ type: "function_call", id: `fc_${id}`, call_id: id, name, arguments: text }) as const;
const text = (delta: string) => event("output_text.delta", { output_index: 0, delta });

function streamed(events: readonly object[], response: object = { status: "completed" }, end = "completed") {
  return replyOf(openaiResponsesDialect, [
    event("created", { response: {} }),
    ...events,
    event(end, { response: { output: [], usage: USAGE, ...response } }),
  ]);
}

describe("tool calls", () => {
  test("are read from interleaved events", () => {
    const reply = streamed([
      added(3, call("a", "f", "")),
      added(1, call("b", "g", "")),
      argument(1, '{"x"'),
      argument(3, "{"),
      argument(1, ":1}"),
      argument(3, "}"),
      event("function_call_arguments.done", { output_index: 3, arguments: "{}" }),
      done(3, call("a", "f", "{}")),
      done(1, call("b", "g", '{"x":1}')),
    ]);
    expect(reply.output.toolCalls).toEqual([
      { id: "a", name: "f", arguments: "{}" },
      { id: "b", name: "g", arguments: '{"x":1}' },
    ]);
    expect(reply.deltas[0]).toEqual({ kind: "tool_call", toolCall: { index: 0, id: "a", name: "f", arguments: "" } });
    expect(reply.done?.finishReason).toBe("tool_calls");
  });

  test("are read from their last event if there are no others", () => {
    const { output } = streamed([done(0, call("a", "f", '{"x":1}')), added(1, call("b", "g", "")), done(1, call("b", "g", ""))]);
    expect(output.toolCalls).toEqual([
      { id: "a", name: "f", arguments: '{"x":1}' },
      { id: "b", name: "g", arguments: "{}" },
    ]);
  });

  test("without arguments get an empty object, which the next request can send back", () => {
    const { output, deltas } = streamed([added(0, call("a", "f", "")), argument(0, ""), done(0, call("a", "f", ""))]);
    expect(output.toolCalls).toEqual([{ id: "a", name: "f", arguments: "{}" }]);
    expect(deltas.at(-1)).toEqual({ kind: "tool_call", toolCall: { index: 0, id: "", name: "", arguments: "{}" } });
  });

  test("without a name are a failure", () => {
    expect(() => streamed([argument(0, "{}")])).toThrow("a tool call has no name");
  });
});

describe("reasoning", () => {
  const part = (summary_index: number) => event("reasoning_summary_part.added", { output_index: 0, summary_index });
  const summary = (delta: string) => event("reasoning_summary_text.delta", { output_index: 0, delta });

  test("is read with its parts, its id and its encrypted form", () => {
    const { output } = streamed([
      part(0),
      summary("One."),
      part(1),
      summary("Two."),
      done(0, { type: "reasoning", id: "rs_1", encrypted_content: "e1", summary: [] }),
      done(1, { type: "reasoning", id: "rs_2", encrypted_content: "e2", summary: [{ type: "summary_text", text: "Three." }] }),
      done(2, { type: "reasoning", id: "rs_3", encrypted_content: null, summary: [] }),
      text("Yes."),
    ]);
    expect(output).toEqual({
      text: "Yes.",
      reasoning: [
        { text: "One.\n\nTwo.", signature: undefined, encrypted: "rs_1:e1" },
        { text: "Three.", signature: undefined, encrypted: "rs_2:e2" },
      ],
      toolCalls: [],
    });
  });

  test("is read once if the server sends it and a summary of it", () => {
    const full = (delta: string) => event("reasoning_text.delta", { output_index: 0, delta });
    const { output } = streamed([full("All "), summary("Short."), full("of it.")]);
    expect(output.reasoning.map((block) => block.text)).toEqual(["All of it."]);
  });
});

describe("the end", () => {
  test.each([
    ["completed", {}, "stop"],
    ["incomplete", { incomplete_details: { reason: "max_output_tokens" } }, "length"],
    ["incomplete", { incomplete_details: { reason: "content_filter" } }, "content_filter"],
    ["incomplete", { incomplete_details: null }, "stop"],
  ])("response.%s with %o", (end, response, expected) => {
    expect(streamed([text("x")], response, end).done?.finishReason).toBe(expected);
  });

  test("a refusal ends with content_filter", () => {
    const { output, done: end } = streamed([event("refusal.delta", { delta: "I cannot." })]);
    expect([output.text, end?.finishReason]).toEqual(["I cannot.", "content_filter"]);
  });

  test("the usage has all its details", () => {
    const usage = { ...NO_USAGE, input: 5, cachedInput: 4, cacheWrite: 1, output: 3, reasoning: 2 };
    expect(streamed([text("x")]).done?.usage).toEqual(usage);
  });

  test("an unexpected end marker is ignored", () => {
    expect(replyOf(openaiResponsesDialect, [text("x"), "[DONE]"]).done).toBeUndefined();
  });
});

describe("a failure", () => {
  test.each([
    [event("failed", { response: { error: { code: "rate_limit_exceeded", message: "m" } } }), "rate_limited"],
    [event("failed", { response: { error: { code: "server_error", message: "m" } } }), "failed"],
    [event("failed", { response: { error: { code: "invalid_prompt", message: "m" } } }), "rejected"],
    [event("failed", {}), "failed"],
    [{ type: "error", code: "rate_limit_exceeded", message: "m", param: null }, "rate_limited"],
    [{ type: "error", code: null, message: "m" }, "failed"],
    [{ type: "error", error: { type: "overloaded_error", message: "m" } }, "failed"],
  ])("%o", (failed, kind) => {
    const reply = () => replyOf(openaiResponsesDialect, [text("x"), failed]);
    expect(reply).toThrow(UpstreamFailure);
    expect(reply).toThrow(expect.objectContaining({ kind }));
  });
});

test("a reply that is not streamed has all of it", () => {
  const whole = {
    object: "response",
    status: "completed",
    error: null,
    output: [
      { type: "reasoning", id: "rs_1", summary: [], content: [{ type: "reasoning_text", text: "Hm." }], encrypted_content: "e" },
      {
        type: "message",
        content: [
          { type: "output_text", text: "Yes." },
          { type: "refusal", refusal: " No." },
        ],
      },
      call("a", "f", "{}"),
      null,
    ],
    usage: USAGE,
  };
  expect(replyOf(openaiResponsesDialect, { whole })).toMatchObject({
    output: {
      text: "Yes. No.",
      reasoning: [{ text: "Hm.", encrypted: "rs_1:e" }],
      toolCalls: [{ id: "a", name: "f", arguments: "{}" }],
    },
    done: { finishReason: "content_filter", usage: { input: 5 } },
  });
});

test.each(["failed", "cancelled", "in_progress", "queued"])("a whole reply with the status %s is a failure", (status) => {
  expect(() => replyOf(openaiResponsesDialect, { whole: { status, output: [] } })).toThrow("not completed");
});
