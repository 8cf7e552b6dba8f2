import fc from "fast-check";
import type { JsonObject } from "../../src/domain/json.ts";
import type { ContentPart, Prompt, PromptMessage, PromptOptions, Reasoning, ToolCall } from "../../src/domain/prompt.ts";

/** Random prompts that pass the checks of requests: every result of a tool follows its call. */

const anyText = fc.oneof(fc.string({ unit: "grapheme", maxLength: 20 }), fc.constantFrom("", " ", '"\n\\', "\u2028😀"));
const name = fc.stringMatching(/^[a-zA-Z0-9_-]{1,12}$/);
const jsonObject = fc
  .dictionary(fc.string({ maxLength: 5 }), fc.jsonValue({ maxDepth: 2 }), { maxKeys: 3 })
  .map((value) => JSON.parse(JSON.stringify(value)) as JsonObject);

const image: fc.Arbitrary<ContentPart> = fc.record({
  kind: fc.constant("image" as const),
  image: fc.oneof(
    fc.constant({ kind: "url" as const, url: "https://example.com/a.png" }),
    fc.record({
      kind: fc.constant("data" as const),
      mediaType: fc.constantFrom("image/png" as const, "image/webp" as const),
      data: fc.base64String({ minLength: 4, maxLength: 12 }),
    }),
  ),
  detail: fc.constantFrom(undefined, "auto" as const, "low" as const, "high" as const),
});
const textPart: fc.Arbitrary<ContentPart> = anyText.map((text) => ({ kind: "text", text }));
const withImages = fc.oneof(anyText, fc.array(fc.oneof(textPart, image), { minLength: 1, maxLength: 4 }));
const texts = fc.oneof(anyText, fc.array(textPart, { minLength: 1, maxLength: 3 }));

const opaque = fc.option(fc.base64String({ minLength: 4, maxLength: 12 }), { nil: undefined });
const reasoning: fc.Arbitrary<Reasoning> = fc.record({
  text: anyText,
  signature: opaque,
  // Encrypted reasoning of the Responses API begins with the id of its item.
  encrypted: fc.oneof(
    opaque,
    fc.base64String({ minLength: 4, maxLength: 12 }).map((text) => `rs_1:${text}`),
  ),
});

/** A reply with the results of its tool calls. */
const exchange = fc
  .record({
    content: texts,
    reasoning: fc.array(reasoning, { maxLength: 2 }),
    calls: fc.array(fc.record({ name, arguments: jsonObject, result: withImages }), { maxLength: 3 }),
    id: fc.nat(),
  })
  .map(({ content, reasoning: blocks, calls, id }): PromptMessage[] => {
    const idOf = (i: number) => `call_${id}_${i}`;
    const toolCalls: ToolCall[] = calls.map((call, i) => ({
      id: idOf(i),
      name: call.name,
      arguments: JSON.stringify(call.arguments),
    }));
    const reply: PromptMessage = {
      role: "assistant",
      content,
      ...(toolCalls.length > 0 ? { toolCalls } : {}),
      ...(blocks.length > 0 ? { reasoning: blocks } : {}),
    };
    return [reply, ...calls.map(({ result }, i) => ({ role: "tool" as const, toolCallId: idOf(i), content: result }))];
  });

const messages = fc
  .array(
    fc.oneof(
      texts.map((content): PromptMessage[] => [{ role: "system", content }]),
      withImages.map((content): PromptMessage[] => [{ role: "user", content }]),
      exchange,
    ),
    { minLength: 1, maxLength: 6 },
  )
  .map((turns) => turns.flat());

const tools = fc.uniqueArray(
  fc.record({
    name,
    description: fc.option(anyText, { nil: undefined }),
    parameters: fc.option(
      jsonObject.map((properties) => ({ type: "object", properties })),
      { nil: undefined },
    ),
    strict: fc.option(fc.boolean(), { nil: undefined }),
  }),
  { selector: (tool) => tool.name, minLength: 1, maxLength: 3 },
);

const sampling = fc.record(
  {
    topP: fc.constantFrom(0, 0.5, 1),
    topK: fc.nat({ max: 100 }),
    seed: fc.integer(),
    presencePenalty: fc.constantFrom(-2, 0, 2),
    frequencyPenalty: fc.constantFrom(-2, 0, 2),
    reasoningEffort: fc.constantFrom("none", "minimal", "low", "medium", "high"),
    suffix: anyText,
    responseFormat: fc.oneof(
      fc.constant({ kind: "json" as const }),
      fc.record({
        kind: fc.constant("json_schema" as const),
        name,
        schema: jsonObject,
        strict: fc.option(fc.boolean(), { nil: undefined }),
      }),
    ),
  },
  { requiredKeys: [] },
);

const toolOptions = fc
  .record({
    tools,
    choice: fc.constantFrom(undefined, "auto", "none", "required", "tool"),
    parallel: fc.boolean(),
  })
  .map(({ tools: list, choice, parallel }) => ({
    tools: list,
    parallelToolCalls: parallel,
    ...(choice === undefined
      ? {}
      : { toolChoice: choice === "tool" ? { kind: choice, name: list[0]?.name ?? "" } : { kind: choice } }),
  }));

/** Few prompts have many options, because each one may be refused. */
const options = fc.oneof(
  fc.constant({}),
  toolOptions,
  sampling,
  fc.tuple(toolOptions, sampling).map(([first, second]) => ({ ...first, ...second })),
) as fc.Arbitrary<PromptOptions>;

export const randomPrompt: fc.Arbitrary<Prompt> = fc.record({
  messages,
  maxTokens: fc.integer({ min: 1, max: 50_000 }),
  temperature: fc.constantFrom(undefined, undefined, 0, 1, 2),
  stop: fc.constantFrom([], [], ["END"], ["\n"]),
  options,
  traits: fc.record({
    capabilities: fc.constantFrom([], ["reasoning" as const]),
    extraFields: fc.constant([]),
  }),
  streamed: fc.boolean(),
});
