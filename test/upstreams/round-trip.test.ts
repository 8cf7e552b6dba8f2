import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { JsonObject } from "../../src/domain/json.ts";
import { REMOTE_KINDS, type RemoteKind } from "../../src/domain/model.ts";
import type {
  ContentPart,
  ImageData,
  Prompt,
  PromptMessage,
  PromptOptions,
  Reasoning,
  ToolCall,
} from "../../src/domain/prompt.ts";
import { createDialect, problemWith } from "../../src/upstreams/dialects.ts";
import { writeBody } from "../../src/upstreams/http/request-body.ts";
import { requestProblems } from "../support/fake-upstreams/request-schemas.ts";
import { runs } from "../support/runs.ts";
import { bytesOf } from "./requests-support.ts";

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
  .record({ tools, choice: fc.constantFrom(undefined, "auto", "none", "required", "tool"), parallel: fc.boolean() })
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

const randomPrompt: fc.Arbitrary<Prompt> = fc.record({
  messages,
  maxTokens: fc.integer({ min: 1, max: 50_000 }),
  temperature: fc.constantFrom(undefined, undefined, 0, 1, 2),
  stop: fc.constantFrom([], [], ["END"], ["\n"]),
  options,
  traits: fc.record({ capabilities: fc.constantFrom([], ["reasoning" as const]), extraFields: fc.constant([]) }),
  streamed: fc.boolean(),
});

/**
 * Reads a conversation from the body of a request, as a server would, and the same from the prompt: the smallest parts
 * in their order, each with its role. Texts that follow each other are one part, because some formats join them.
 */

type Atom = readonly [role: string, kind: string, ...values: unknown[]];

// biome-ignore lint/suspicious/noExplicitAny: the schemas check the bodies before
type Json = any;

const DECODERS: Readonly<Record<RemoteKind, (body: Json) => Atom[]>> = {
  openai: decodeChat,
  "openai-responses": decodeResponses,
  anthropic: decodeMessages,
};

/** What the kind can carry of the prompt. */
function atomsOf({ messages }: Prompt, kind: RemoteKind): Atom[] {
  const isKept: Readonly<Record<RemoteKind, (block: Reasoning) => boolean>> = {
    openai: () => false,
    "openai-responses": ({ encrypted }) => encrypted !== undefined,
    anthropic: ({ signature, encrypted }) => (signature === undefined) !== (encrypted === undefined) && !encrypted?.includes(":"),
  };
  const atoms = messages.flatMap(({ role, content, reasoning = [], toolCalls = [], toolCallId }): Atom[] => [
    ...(toolCallId === undefined ? [] : [[role, "result", toolCallId] as const]),
    ...reasoning.filter(isKept[kind]).map(
      ({ text, signature, encrypted }): Atom =>
        // Redacted reasoning has no text.
        [
          role,
          "reasoning",
          kind === "anthropic" && encrypted !== undefined ? "" : text,
          kind === "openai-responses" ? undefined : signature,
          encrypted,
        ],
    ),
    ...(typeof content === "string" ? [[role, "text", content] as const] : content.map((part) => partAtom(role, part))),
    ...toolCalls.map((call): Atom => [role, "call", call.id, call.name, JSON.parse(call.arguments)]),
  ]);
  return normalized(atoms, kind);
}

/** System messages have a place of their own in one format. */
function normalized(atoms: readonly Atom[], kind: RemoteKind): Atom[] {
  const isSystem = ([role]: Atom) => role === "system";
  const ordered = kind === "anthropic" ? [...atoms.filter(isSystem), ...atoms.filter((atom) => !isSystem(atom))] : atoms;
  const joined: Atom[] = [];
  for (const atom of ordered) {
    const [role, what, text] = atom;
    const last = joined.at(-1);
    if (what !== "text" || !isLost(kind, `${text}`)) {
      if (what === "text" && last?.[0] === role && last[1] === "text")
        joined[joined.length - 1] = [role, "text", `${last[2]}${text}`];
      else joined.push(atom);
    }
  }
  return joined;
}

function isLost(kind: RemoteKind, text: string): boolean {
  return text === "" || (kind === "anthropic" && text.trim() === "");
}

function partAtom(role: string, part: ContentPart): Atom {
  if (part.kind === "text") return [role, "text", part.text];
  const { image } = part;
  return [role, "image", image.kind === "url" ? image.url : `data:${image.mediaType};base64,${base64Of(image.data)}`];
}

function base64Of(data: ImageData): string {
  return typeof data === "string" ? data : Buffer.from(data).toString("base64");
}

function decodeChat({ messages }: Json): Atom[] {
  return messages.flatMap(({ role, content = [], tool_calls = [], tool_call_id }: Json) => [
    ...(tool_call_id === undefined ? [] : [[role, "result", tool_call_id]]),
    ...partsOf(content).map((part) => (part.type === "text" ? [role, "text", part.text] : [role, "image", part.image_url.url])),
    ...tool_calls.map((call: Json) => [role, "call", call.id, call.function.name, JSON.parse(call.function.arguments)]),
  ]);
}

function decodeResponses({ input }: Json): Atom[] {
  const contents = (role: string, content: Json) =>
    partsOf(content).map(
      (part): Atom => (part.type === "input_image" ? [role, "image", part.image_url] : [role, "text", part.text]),
    );
  return input.flatMap((item: Json) => {
    switch (item.type) {
      case "function_call":
        return [["assistant", "call", item.call_id, item.name, JSON.parse(item.arguments)]];
      case "function_call_output":
        return [["tool", "result", item.call_id], ...contents("tool", item.output)];
      case "reasoning":
        return [["assistant", "reasoning", item.summary[0]?.text ?? "", undefined, opaqueOf(item)]];
      default:
        return contents(item.role, item.content);
    }
  });
}

function opaqueOf({ id, encrypted_content: encrypted }: Json): string {
  return id === undefined ? encrypted : `${id}:${encrypted}`;
}

function decodeMessages({ system = [], messages }: Json): Atom[] {
  const block = (role: string, value: Json): Atom[] => {
    switch (value.type) {
      case "text":
        return [[role, "text", value.text]];
      case "image": {
        const { type, url, media_type, data } = value.source;
        return [[role, "image", type === "url" ? url : `data:${media_type};base64,${data}`]];
      }
      case "thinking":
        return [[role, "reasoning", value.thinking, value.signature, undefined]];
      case "redacted_thinking":
        return [[role, "reasoning", "", undefined, value.data]];
      case "tool_use":
        return [[role, "call", value.id, value.name, value.input]];
      default:
        return [["tool", "result", value.tool_use_id], ...partsOf(value.content ?? []).flatMap((part) => block("tool", part))];
    }
  };
  return [
    ...partsOf(system).flatMap((part) => block("system", part)),
    ...messages.flatMap(({ role, content }: Json) => partsOf(content).flatMap((part) => block(role, part))),
  ];
}

function partsOf(content: Json): Json[] {
  return typeof content === "string" ? [{ type: "text", text: content }] : content;
}

const RUNS = runs(100);

describe.each(REMOTE_KINDS)("%s", (kind) => {
  const settings = { kind, baseUrl: "http://127.0.0.1", apiKeyEnv: undefined, model: "m", timeoutMs: 1_000 };
  const dialect = createDialect(settings);
  const carried = randomPrompt.filter((prompt) => !problemWith(settings, prompt, prompt.traits));

  test("the body of a random prompt is valid, and a server reads the same conversation from it", () => {
    fc.assert(
      fc.property(carried, fc.constantFrom("m", "claude-opus-5"), (prompt, model) => {
        const body: unknown = JSON.parse(JSON.stringify(dialect.body(prompt, model)));
        expect(requestProblems(kind, body)).toEqual([]);
        expect(normalized(DECODERS[kind](body), kind)).toEqual(atomsOf(prompt, kind));
      }),
      { numRuns: RUNS },
    );
  });

  test("a body that is encoded in parts is the same", async () => {
    await fc.assert(
      fc.asyncProperty(carried, async (prompt) => {
        const body = dialect.body(prompt, "m");
        const { parts } = await writeBody(body, 1_000_000);
        const text = bytesOf(parts).toString();
        expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify(body)));
      }),
      { numRuns: RUNS },
    );
  });

  test("the options of a random prompt are all in the body", () => {
    fc.assert(
      fc.property(carried, (prompt) => {
        const { tools = [], topP, responseFormat } = prompt.options;
        const text = JSON.stringify(dialect.body(prompt, "m"));
        const sent = JSON.parse(text) as Record<string, unknown>;
        expect(sent.top_p).toBe(topP);
        for (const tool of tools) expect(text).toContain(`"name":"${tool.name}"`);
        if (responseFormat?.kind === "json_schema") expect(text).toContain(JSON.stringify(responseFormat.schema));
        const { budget_tokens: budget = 0 } = (sent.thinking ?? {}) as { budget_tokens?: number };
        expect(budget).toBeLessThan(prompt.maxTokens);
      }),
      { numRuns: RUNS },
    );
  });
});
