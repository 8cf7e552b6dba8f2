import { base64Length } from "./base64.ts";
import { type JsonObject, jsonTextOf } from "./json.ts";
import { nextTurn } from "./next-turn.ts";
import type { CacheControl, Prompt, PromptMessage, PromptOptions } from "./prompt.ts";
import { unitsOf } from "./text.ts";

/** The parts of a prompt whose tokens count as input. */
export type PromptInput = Pick<Prompt, "messages" | "options">;

/** Tokens of a message in addition to its texts: its role and delimiters. */
const MESSAGE_TOKENS = 4;

/** All texts of a prompt. A list, because a generator would cost more than most prompts. */
export function textsOfPrompt({ messages, options }: PromptInput): string[] {
  const texts: string[] = [];
  for (const message of messages) appendTexts(texts, message);
  appendDefinitions(texts, options);
  if (options.suffix) texts.push(options.suffix);
  return texts;
}

/** The tools and the schema of the reply, which upstreams make part of the prompt; usually none. */
function appendDefinitions(texts: string[], { tools, responseFormat }: PromptOptions): void {
  if (tools) {
    for (const { parameters, ...tool } of tools) {
      texts.push(JSON.stringify(tool));
      if (parameters) texts.push(jsonTextOf(parameters));
    }
  }
  if (responseFormat?.kind !== "json_schema") return;
  const { schema, ...format } = responseFormat;
  texts.push(JSON.stringify(format), jsonTextOf(schema));
}

/** Tokens in addition to those of the texts. Other tasks than a reply use no template for messages. */
export function templateTokensOf({ messages, options }: PromptInput): number {
  return options.task ? 0 : messages.length * MESSAGE_TOKENS;
}

export function textsOfMessage(message: PromptMessage): string[] {
  const texts: string[] = [];
  appendTexts(texts, message);
  return texts;
}

function appendTexts(texts: string[], { content, toolCalls, reasoning }: PromptMessage): void {
  if (typeof content === "string") texts.push(content);
  else for (const part of content) if (part.kind === "text") texts.push(part.text);
  if (toolCalls) for (const call of toolCalls) texts.push(call.name, call.arguments);
  if (!reasoning) return;
  // Some upstreams get the text of a block, others its encrypted form.
  for (const { text, encrypted } of reasoning) {
    texts.push(text);
    if (encrypted !== undefined) texts.push(encrypted);
  }
}

export function imagesIn(messages: readonly PromptMessage[]): number {
  let images = 0;
  for (const { content } of messages) {
    if (typeof content === "string") continue;
    for (const { kind } of content) if (kind === "image") images++;
  }
  return images;
}

/** Measuring this many units takes about a millisecond. */
const UNITS_PER_TURN = 262_144;

/**
 * Maximum tokens of the texts: a byte-level tokenizer makes at most one token per byte. Long prompts are measured in turns of the
 * event loop.
 */
export function inputTokenBound(input: PromptInput): number | Promise<number> {
  const texts = textsOfPrompt(input);
  const ofTemplate = templateTokensOf(input);
  return unitsOf(texts) <= UNITS_PER_TURN
    ? ofTemplate + texts.reduce((bytes, text) => bytes + Buffer.byteLength(text), 0)
    : bytesInTurns(texts).then((bytes) => ofTemplate + bytes);
}

async function bytesInTurns(texts: readonly string[]): Promise<number> {
  let bytes = 0;
  let units = 0;
  for (const text of texts) {
    units += text.length;
    if (units > UNITS_PER_TURN) {
      units = text.length;
      await nextTurn();
    }
    bytes += Buffer.byteLength(text);
  }
  return bytes;
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

function opaqueTexts({ messages, options, stop }: OpaqueInput, extraFieldNames: readonly string[]): readonly string[] {
  const texts = [...stop];
  for (const message of messages) appendOpaqueTexts(texts, message);
  if (options.toolChoice?.kind === "tool") texts.push(options.toolChoice.name);
  if (options.extraFields) texts.push(JSON.stringify(listedFields(options.extraFields.fields, extraFieldNames)));
  return texts;
}

function appendOpaqueTexts(texts: string[], message: PromptMessage): void {
  const { content, toolCalls, reasoning, toolCallId, cacheControl } = message;
  if (typeof content !== "string") for (const part of content) appendCacheControl(texts, part.cacheControl);
  appendCacheControl(texts, cacheControl);
  if (toolCallId !== undefined) texts.push(toolCallId);
  if (toolCalls) for (const { id } of toolCalls) texts.push(id);
  if (reasoning) for (const { signature } of reasoning) if (signature !== undefined) texts.push(signature);
}

function appendCacheControl(texts: string[], cacheControl: CacheControl | undefined): void {
  if (cacheControl) texts.push(JSON.stringify(cacheControl));
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
      if (part.kind !== "image" || part.image.kind !== "data") continue;
      const { data } = part.image;
      characters += typeof data === "string" ? data.length : base64Length(data.length);
    }
  }
  return characters;
}

export type CountOptions = {
  readonly signal?: AbortSignal;
  /** Counting may stop once there are more tokens than this. */
  readonly maxTokens?: number;
  /** The account of the call, so that many large texts of one account do not delay other accounts for long. */
  readonly accountId?: string;
};
