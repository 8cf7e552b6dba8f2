import type { JsonObject } from "./json.ts";
import type { ModelTraits } from "./model.ts";

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
