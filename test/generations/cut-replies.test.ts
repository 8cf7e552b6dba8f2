import { describe, expect, test } from "vitest";
import type { RemoteKind } from "../../src/domain/model.ts";
import { KINDS, useDialects } from "../support/dialects.ts";
import { raw, reply } from "../support/fake-upstreams/behaviours.ts";
import { type GenerateFields, useGenerator } from "../support/generators.ts";

const dialects = useDialects();
const generator = useGenerator(dialects);

const JSON_TYPE = { "content-type": "application/json" };
const ARGS = `{"a":"${"x".repeat(300_000)}"}`;
const chatUsage = { prompt_tokens: 20, completion_tokens: 31_000 };
const apiUsage = { input_tokens: 20, output_tokens: 31_000 };

/** A reply with one tool call in one piece: as events, and as one JSON object. */
const CALLS: Readonly<Record<RemoteKind, { events: object[]; whole: object }>> = {
  openai: (() => {
    const tool_calls = [{ index: 0, id: "call_1", function: { name: "look", arguments: ARGS } }];
    return {
      events: [
        { choices: [{ index: 0, delta: { tool_calls } }] },
        { choices: [{ index: 0, delta: {}, finish_reason: "tool_calls" }], usage: chatUsage },
      ],
      whole: { choices: [{ index: 0, message: { tool_calls }, finish_reason: "tool_calls" }], usage: chatUsage },
    };
  })(),
  "openai-responses": (() => {
    const item = { type: "function_call", call_id: "call_1", name: "look", arguments: ARGS };
    const response = { status: "completed", output: [item], usage: apiUsage };
    return {
      events: [
        { type: "response.output_item.added", output_index: 0, item: { ...item, arguments: "" } },
        { type: "response.function_call_arguments.delta", output_index: 0, delta: ARGS },
        { type: "response.output_item.done", output_index: 0, item },
        { type: "response.completed", response },
      ],
      whole: response,
    };
  })(),
  anthropic: (() => {
    const block = { type: "tool_use", id: "call_1", name: "look", input: {} };
    return {
      events: [
        { type: "content_block_start", index: 0, content_block: block },
        { type: "content_block_delta", index: 0, delta: { type: "input_json_delta", partial_json: ARGS } },
        { type: "content_block_stop", index: 0 },
        { type: "message_delta", delta: { stop_reason: "tool_use" }, usage: apiUsage },
        { type: "message_stop" },
      ],
      whole: {
        type: "message",
        content: [{ ...block, input: JSON.parse(ARGS) as object }],
        stop_reason: "tool_use",
        usage: apiUsage,
      },
    };
  })(),
};

const requestOf = (model: string, maxTokens: number) => ({
  model,
  maxTokens,
  messages: [{ role: "user", content: "Hi" }],
  tools: [{ name: "look" }],
});

const unaryOf = async (request: GenerateFields) => await generator.generate(request, { secret: dialects.key.secret });

/** The texts or arguments of a stream as one, and its end. */
async function streamOf(request: GenerateFields) {
  let text = "";
  for await (const { event } of generator.stream(request, { secret: dialects.key.secret })) {
    if (event.case !== "delta") return { text, end: event.value };
    text += event.value.content + (event.value.toolCall?.arguments ?? "");
  }
  return { text, end: undefined };
}

describe.each(KINDS)("a call above the size limit that arrives in one piece from %s", (kind) => {
  const { events, whole } = CALLS[kind];
  test.each([
    ["as events", raw(events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join(""))],
    ["as JSON", raw(JSON.stringify(whole), JSON_TYPE)],
  ])("%s is cut, delivered and charged up to max_tokens", async (_, behaviour) => {
    // A reply of 1,000 tokens has at most 129,024 characters.
    const expected = `${ARGS.slice(0, 129_024 - "call_1look".length)}`;
    const cut = { finishReason: "length", usage: { outputTokens: 1_000n } };
    const charged = { inputTokens: 20n, outputTokens: 1_000n, amountMicros: -1_020n };
    dialects.upstreams[kind].next(behaviour, behaviour);
    const unary = await unaryOf(requestOf(kind, 1_000));
    expect(unary).toMatchObject(cut);
    expect(unary.message?.toolCalls).toMatchObject([{ name: "look", arguments: expected }]);
    expect(await dialects.lastEntry()).toMatchObject(charged);
    const { text, end } = await streamOf(requestOf(kind, 1_000));
    expect(text === expected).toBe(true);
    expect(end).toMatchObject(cut);
    expect(await dialects.lastEntry()).toMatchObject(charged);
  });
});

describe("max_tokens below the minimum of openai-responses", () => {
  const request = { ...requestOf("openai-responses", 3), tools: [] };
  const TOKENS = ["one", " two", " three", " four", " five", " six", " seven", " eight"];
  test.each([
    ["one piece", [TOKENS.join("")]],
    ["a piece for each token", TOKENS],
  ])("cuts a reply in %s at max_tokens tokens, and charges these", async (_, pieces) => {
    const upstream = dialects.upstreams["openai-responses"];
    const said = reply({ pieces, finishReason: "length", usage: { input: 20, output: 8 } });
    upstream.next(said, said);
    const usage = { inputTokens: 20n, outputTokens: 3n };
    const unary = { message: { content: "one two three" }, finishReason: "length", usage };
    expect(await unaryOf(request)).toMatchObject(unary);
    expect(upstream.calls.at(-1)?.body).toMatchObject({ max_output_tokens: 16 });
    expect((await streamOf(request)).text).toBe("one two three");
    expect(await dialects.lastEntry()).toMatchObject(usage);
  });

  test("delivers a reply whole that has as many tokens for the upstream", async () => {
    const pieces = ["one two three four"];
    dialects.upstreams["openai-responses"].next(reply({ pieces, usage: { input: 20, output: 3 } }));
    const whole = { message: { content: pieces[0] }, finishReason: "stop", usage: { outputTokens: 3n } };
    expect(await unaryOf(request)).toMatchObject(whole);
  });
});
