import { base64Length } from "./base64.ts";
import { nextTurn } from "./fairness.ts";
import { type JsonObject, jsonTextOf } from "./json.ts";
import type { ModelTraits } from "./model.ts";
import { unitsOf } from "./text.ts";

/** A conversation and its parameters, independent of the caller's API. */
export type Prompt = {
  readonly messages: readonly PromptMessage[];
  readonly maxTokens: number;
  readonly temperature: number | undefined;
  /** The reply ends before any of these texts. */
  readonly stop: readonly string[];
  readonly options: PromptOptions;
  readonly traits: ModelTraits;
  /** Whether the caller gets the pieces as they arrive. Otherwise an upstream may join them. */
  readonly streamed: boolean;
};

/** Parameters that most prompts leave out. Without a parameter, the upstream decides. */
export type PromptOptions = {
  /** What the prompt asks for; a reply to the conversation if undefined. */
  readonly task?: Task;
  readonly topP?: number;
  readonly topK?: number;
  readonly seed?: number;
  readonly presencePenalty?: number;
  readonly frequencyPenalty?: number;
  readonly tools?: readonly Tool[];
  readonly toolChoice?: ToolChoice;
  readonly parallelToolCalls?: boolean;
  readonly responseFormat?: ResponseFormat;
  readonly reasoningEffort?: ReasoningEffort;
  /** The maximum number of tokens for reasoning, for upstreams that have such a limit. */
  readonly reasoningBudgetTokens?: number;
  /** How the model summarizes its reasoning, for upstreams that do not return the reasoning itself. */
  readonly reasoningSummary?: ReasoningSummary;
  /** The text after the position where the reply is inserted, for the completion of code. */
  readonly suffix?: string;
  /** Fields that an upstream of the same format gets unchanged. */
  readonly extraFields?: ExtraFields;
};

export type Task =
  /** A vector for the text of each message. */
  | { readonly kind: "embed"; readonly dimensions: number | undefined }
  /** The text that continues the text of the only message, up to the suffix. */
  | { readonly kind: "complete" };

/** Shared by all prompts without options, so that they cost nothing. */
export const NO_OPTIONS: PromptOptions = {};

type GivenOptions = { readonly [Name in keyof PromptOptions]: PromptOptions[Name] | undefined };

/** Without the parameters that are undefined. Requests without parameters share one object. */
export function presentOptions(given: GivenOptions): PromptOptions {
  let options: Record<string, unknown> | undefined;
  for (const name in given) {
    const value = given[name as keyof GivenOptions];
    if (value === undefined) continue;
    options ??= {};
    options[name] = value;
  }
  return options ?? NO_OPTIONS;
}

/** The formats of requests. A request of one format can be sent to an upstream of another one. */
export type Format = "native" | "openai-chat" | "openai-responses" | "anthropic-messages";

type ExtraFields = {
  readonly format: Format;
  readonly fields: JsonObject;
};

export type Role = "system" | "user" | "assistant" | "tool";

export type PromptMessage = {
  readonly role: Role;
  /** A text, or texts and images in their order. */
  readonly content: string | readonly ContentPart[];
  /** Only of an assistant: the tool calls of its reply. */
  readonly toolCalls?: readonly ToolCall[];
  /** Only of an assistant: the reasoning before its reply. */
  readonly reasoning?: readonly Reasoning[];
  /** Only of a tool: the id of the call whose result this is. */
  readonly toolCallId?: string;
  /** Only of a tool: the call failed. */
  readonly isError?: boolean;
  /** Only of a tool: see CacheControl. */
  readonly cacheControl?: CacheControl;
};

// The limits of a message. Replies have the same ones, so that a conversation can be continued.
export const MAX_MESSAGE_CHARACTERS = 400_000;
export const MAX_PARTS = 1_000;
export const MAX_CALLS = 256;
export const MAX_REASONING_BLOCKS = 256;
/** Limit for tool call ids and names. */
export const MAX_ID_CHARACTERS = 256;

/** Most messages: a text of an allowed length and nothing else. There is nothing to check in a conversation of them. */
export function isShortText({ role, content, toolCalls, reasoning, toolCallId }: PromptMessage): boolean {
  return (
    typeof content === "string" &&
    content.length <= MAX_MESSAGE_CHARACTERS &&
    role !== "tool" &&
    !toolCalls &&
    !reasoning &&
    toolCallId === undefined
  );
}

export type ContentPart = (
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "image"; readonly image: Image; readonly detail: ImageDetail | undefined }
) & { readonly cacheControl?: CacheControl };

export function textOfPart(part: ContentPart): string {
  return part.kind === "text" ? part.text : "";
}

/**
 * Where a cached part of the prompt ends, in Anthropic's format. It changes no reply, so upstreams without such a
 * control do not get it.
 */
export type CacheControl = JsonObject;

export type Image =
  | { readonly kind: "url"; readonly url: string }
  | { readonly kind: "data"; readonly mediaType: ImageType; readonly data: ImageData };

/** The bytes, or their base64, as the caller sent them. */
export type ImageData = string | Uint8Array;

export const IMAGE_TYPES = ["image/png", "image/jpeg", "image/gif", "image/webp"] as const;

export type ImageType = (typeof IMAGE_TYPES)[number];

export type ImageDetail = "auto" | "low" | "high";

export type Tool = {
  readonly name: string;
  readonly description: string | undefined;
  readonly parameters: JsonObject | undefined;
  readonly strict: boolean | undefined;
  readonly cacheControl?: CacheControl;
};

export type ToolChoice = { readonly kind: "auto" | "none" | "required" } | { readonly kind: "tool"; readonly name: string };

export type ToolCall = {
  readonly id: string;
  readonly name: string;
  /** JSON text. */
  readonly arguments: string;
};

/** A block of a model's reasoning. Signature and encrypted form are opaque: only the upstream can check them. */
export type Reasoning = {
  readonly text: string;
  readonly signature: string | undefined;
  readonly encrypted: string | undefined;
};

export type ResponseFormat =
  | { readonly kind: "json" }
  | {
      readonly kind: "json_schema";
      readonly name: string;
      readonly schema: JsonObject;
      readonly strict: boolean | undefined;
    };

export const REASONING_EFFORTS = ["none", "minimal", "low", "medium", "high"] as const;

export type ReasoningEffort = (typeof REASONING_EFFORTS)[number];

export const REASONING_SUMMARIES = ["auto", "concise", "detailed"] as const;

export type ReasoningSummary = (typeof REASONING_SUMMARIES)[number];

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
