import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { REMOTE_KINDS, type RemoteKind } from "../../src/domain/model.ts";
import {
  type CacheControl,
  type ContentPart,
  charactersIn,
  type Format,
  inputTokenBound,
  opaqueTokenBound,
  type Prompt,
  type PromptMessage,
  type Reasoning,
} from "../../src/domain/prompt.ts";
import { createDialect, problemWith } from "../../src/upstreams/dialects.ts";
import { openaiBody } from "../../src/upstreams/openai/body.ts";
import { runs } from "../support/runs.ts";
import { promptOf } from "../support/samples.ts";

const reasoned = (reasoning: Reasoning): PromptMessage => ({ role: "assistant", content: "", reasoning: [reasoning] });

test("the text of reasoning counts as input beside its encrypted form, because upstreams can get it", async () => {
  const text = "x ".repeat(1_000);
  const prompt = promptOf({
    messages: [reasoned({ text, signature: undefined, encrypted: "e" })],
    traits: { capabilities: [], extraFields: ["reasoning_content"] },
  });
  expect(JSON.stringify(openaiBody(prompt, "m", "max_tokens"))).toContain(text);
  expect(await inputTokenBound(prompt)).toBeGreaterThan(text.length);
});

test("the size of a prompt includes signatures", () => {
  const prompt = promptOf({ messages: [reasoned({ text: "", signature: "s".repeat(1_000), encrypted: undefined })] });
  expect(charactersIn(prompt)).toBeGreaterThanOrEqual(1_000);
});

/** Only texts of a caller have these characters; what a dialect adds itself is ASCII. */
const word = fc.string({ unit: fc.constantFrom("é", "日", "😀"), minLength: 1, maxLength: 12 });
/** Longer than what the bound counts beyond the texts, so that no text can be missing. */
const longWord = word.map((text) => `${text}${"日".repeat(200)}`);
const maybe = <Value>(value: fc.Arbitrary<Value>) => fc.option(value, { nil: undefined, freq: 1 });
const object = fc.dictionary(word, word, { minKeys: 1, maxKeys: 3 });
const cacheControl: fc.Arbitrary<{ cacheControl?: CacheControl }> = fc.record({ cacheControl: object }, { requiredKeys: [] });
const part: fc.Arbitrary<ContentPart> = fc
  .tuple(word, cacheControl)
  .map(([text, control]) => ({ kind: "text", text, ...control }));
const content = fc.oneof(word, fc.array(part, { minLength: 1, maxLength: 3 }));
const reasoning: fc.Arbitrary<Reasoning> = fc.record({ text: word, signature: maybe(longWord), encrypted: maybe(word) });
const exchange = fc
  .record({
    content,
    reasoning: fc.array(reasoning, { minLength: 1, maxLength: 2 }),
    calls: fc.uniqueArray(fc.record({ id: longWord, name: word, args: object, result: content }), {
      selector: ({ id }) => id,
      maxLength: 3,
    }),
    control: cacheControl,
  })
  .map(({ content, reasoning, calls, control }): PromptMessage[] => [
    {
      role: "assistant",
      content,
      reasoning,
      toolCalls: calls.map(({ id, name, args }) => ({ id, name, arguments: JSON.stringify(args) })),
    },
    ...calls.map(({ id, result }) => ({ role: "tool" as const, content: result, toolCallId: id, isError: true, ...control })),
  ]);
const message = fc
  .record({ role: fc.constantFrom("system" as const, "user" as const), content })
  .map((one): PromptMessage[] => [one]);
const tool = fc.record({ name: longWord, description: word, parameters: object, strict: fc.constant(true) });
const prompt = (format: Format): fc.Arbitrary<Prompt> =>
  fc
    .record({
      messages: fc.array(fc.oneof(message, exchange), { minLength: 1, maxLength: 4 }),
      stop: fc.array(longWord, { maxLength: 2 }),
      tools: fc.array(tool, { minLength: 1, maxLength: 2 }),
      isChosen: fc.boolean(),
      schema: maybe(object),
      suffix: maybe(word),
      task: maybe(fc.constant({ kind: "complete" as const })),
      extra: object,
      isExtraListed: fc.boolean(),
    })
    .map(({ messages, stop, tools, isChosen, schema, suffix, task, extra, isExtraListed }) =>
      promptOf({
        messages: task ? [{ role: "user", content: "é" }] : messages.flat(),
        stop,
        traits: { capabilities: ["reasoning"], extraFields: ["reasoning_content", ...(isExtraListed ? Object.keys(extra) : [])] },
        options: {
          tools,
          toolChoice: isChosen ? { kind: "tool", name: tools[0]?.name ?? "" } : { kind: "auto" },
          extraFields: { format, fields: extra },
          ...(schema && { responseFormat: { kind: "json_schema", name: "日", schema, strict: true } }),
          ...(suffix !== undefined && { suffix }),
          ...(task && { task }),
        },
      }),
    );

const FORMATS: Record<RemoteKind, Format> = {
  openai: "openai-chat",
  "openai-responses": "openai-responses",
  anthropic: "anthropic-messages",
};

describe.each(REMOTE_KINDS)("%s", (kind) => {
  test("a hold covers the bytes of every text that is sent to the upstream", async () => {
    const settings = { kind, baseUrl: "http://127.0.0.1", apiKeyEnv: undefined, model: "m", timeoutMs: 1_000 };
    const dialects = createDialect(settings);
    await fc.assert(
      fc.asyncProperty(
        prompt(FORMATS[kind]).filter((one) => !problemWith(settings, one, one.traits)),
        async (sent) => {
          const dialect = sent.options.task ? dialects.tasks?.complete : dialects;
          const body = JSON.stringify(dialect?.body(sent, "m"));
          const bytes = Buffer.byteLength(body.replace(/\p{ASCII}/gu, ""));
          const bound = (await inputTokenBound(sent)) + opaqueTokenBound(sent, sent.traits.extraFields);
          expect(bound).toBeGreaterThanOrEqual(bytes);
          expect(charactersIn(sent)).toBeGreaterThanOrEqual(body.replace(/\p{ASCII}/gu, "").length);
        },
      ),
      { numRuns: runs(300) },
    );
  });
});
