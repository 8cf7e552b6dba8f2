import type { JsonObject } from "./json.ts";
import { jsonTextOf } from "./json-text.ts";
import type { CacheControl, Prompt, PromptMessage, PromptOptions } from "./prompt.ts";

/** The parts of a prompt whose tokens count as input. */
export type PromptInput = Pick<Prompt, "messages" | "options">;

/** Tokens of a message in addition to its texts: its role and delimiters. */
const MESSAGE_TOKENS = 4;

/** The tools and the schema of the reply, which upstreams make part of the prompt; usually none. */
function* definitionsOf({ tools, responseFormat }: PromptOptions): Generator<string, void, undefined> {
  if (tools) {
    for (const { parameters, ...tool } of tools) {
      yield JSON.stringify(tool);
      if (parameters) yield jsonTextOf(parameters);
    }
  }
  if (responseFormat?.kind !== "json_schema") return;
  const { schema, ...format } = responseFormat;
  yield JSON.stringify(format);
  yield jsonTextOf(schema);
}

/** All texts of a prompt. */
export function* textsOfPrompt({ messages, options }: PromptInput): Generator<string, void, undefined> {
  for (const message of messages) yield* textsOfMessage(message);
  yield* definitionsOf(options);
  if (options.suffix) yield options.suffix;
}

/** Tokens in addition to those of the texts. Other tasks than a reply use no template for messages. */
export function templateTokensOf({ messages, options }: PromptInput): number {
  return options.task ? 0 : messages.length * MESSAGE_TOKENS;
}

export function* textsOfMessage(message: PromptMessage): Generator<string, void, undefined> {
  const { content, toolCalls, reasoning } = message;
  if (typeof content === "string") yield content;
  else for (const part of content) if (part.kind === "text") yield part.text;
  if (toolCalls) {
    for (const call of toolCalls) {
      yield call.name;
      yield call.arguments;
    }
  }
  if (!reasoning) return;
  // Some upstreams get the text of a block, others its encrypted form.
  for (const { text, encrypted } of reasoning) {
    yield text;
    if (encrypted !== undefined) yield encrypted;
  }
}

/** The number of images. */
export function imagesIn(messages: readonly PromptMessage[]): number {
  let images = 0;
  for (const { content } of messages) {
    if (typeof content === "string") continue;
    for (const { kind } of content) if (kind === "image") images++;
  }
  return images;
}

/** Maximum tokens of the texts: a byte-level tokenizer makes at most one token per byte. */
export function inputTokenBound(input: PromptInput): number {
  let bound = templateTokensOf(input);
  for (const text of textsOfPrompt(input)) bound += Buffer.byteLength(text, "utf8");
  return bound;
}

/** The parts of a prompt other than texts and images. */
type OpaqueInput = PromptInput & Pick<Prompt, "stop">;

/**
 * Maximum tokens of the parts other than texts and images. Most upstreams count no tokens for them, so only the hold
 * includes them: if an upstream counts some, they are charged.
 */
export function opaqueTokenBound(input: OpaqueInput, extraFieldNames: readonly string[]): number {
  let bound = 0;
  for (const text of opaqueTexts(input, extraFieldNames)) bound += Buffer.byteLength(text, "utf8");
  return bound;
}

function* opaqueTexts(
  { messages, options, stop }: OpaqueInput,
  extraFieldNames: readonly string[],
): Generator<string, void, undefined> {
  for (const message of messages) yield* opaqueTextsOfMessage(message);
  yield* stop;
  if (options.toolChoice?.kind === "tool") yield options.toolChoice.name;
  if (options.extraFields) yield JSON.stringify(listedFields(options.extraFields.fields, extraFieldNames));
}

function* opaqueTextsOfMessage(message: PromptMessage): Generator<string, void, undefined> {
  const { content, toolCalls, reasoning, toolCallId, cacheControl } = message;
  if (typeof content !== "string") for (const part of content) yield* cacheControlText(part.cacheControl);
  yield* cacheControlText(cacheControl);
  if (toolCallId !== undefined) yield toolCallId;
  if (toolCalls) for (const { id } of toolCalls) yield id;
  if (reasoning) for (const { signature } of reasoning) if (signature !== undefined) yield signature;
}

function* cacheControlText(cacheControl: CacheControl | undefined): Generator<string, void, undefined> {
  if (cacheControl) yield JSON.stringify(cacheControl);
}

/** The extra fields of a request that its model lists: upstreams of the same format get them. */
export function listedFields(fields: JsonObject, names: readonly string[]): JsonObject {
  const listed = names.filter((name) => Object.hasOwn(fields, name));
  return Object.fromEntries(listed.map((name) => [name, fields[name] ?? null]));
}

/** The size of a prompt in UTF-16 code units, with the parts that are not texts. */
export function charactersIn(prompt: Prompt): number {
  let characters = 0;
  for (const text of textsOfPrompt(prompt)) characters += text.length;
  for (const text of opaqueTexts(prompt, prompt.traits.extraFields)) characters += text.length;
  for (const { content } of prompt.messages) {
    if (typeof content === "string") continue;
    for (const part of content) {
      if (part.kind === "image" && part.image.kind === "data") characters += part.image.base64.length;
    }
  }
  return characters;
}
