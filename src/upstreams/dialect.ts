import type { JsonObject } from "../domain/json.ts";
import type { ModelTraits } from "../domain/model.ts";
import { type Format, listedFields, NO_OPTIONS, type Prompt, type PromptMessage, type Task } from "../domain/prompt.ts";
import type { ReplyBuffer } from "./http/reply-buffer.ts";

/** The request and response format of one kind of server. */
export type Dialect = {
  /** The request path, given the path of the base URL. */
  path(basePath: string): string;
  headers(apiKey: string | undefined): Readonly<Record<string, string>>;
  /** The request body, before JSON encoding. */
  body(prompt: Prompt, model: string): object;
  /**
   * One reader per call, which writes the reply into the buffer. Both methods of the reader throw an
   * UpstreamFailure if the response is invalid or reports an error.
   */
  createReader(reply: ReplyBuffer, prompt: Prompt): ResponseReader;
  /** The lowest limit of output tokens that the API accepts. Lower limits are raised to it; the reply is cut here. */
  readonly minTokens?: number;
  /** The maximum size of a response that is not streamed, if it differs from the usual one. */
  readonly maxJsonBytes?: number;
};

/** How a kind of server is asked for replies and, if it can, for other tasks. */
export type Dialects = Dialect & { readonly tasks?: Readonly<Partial<Record<Task["kind"], Dialect>>> };

export type ResponseReader = {
  readEvent(data: string): void;
  /** The complete reply of a server that does not stream. */
  readWhole(body: string): void;
};

/** A prompt before its size is known. */
export type UnsizedPrompt = Omit<Prompt, "maxTokens" | "traits" | "streamed">;

/** A part of a prompt that an upstream cannot get, although the reply depends on it. */
export type PromptProblem = {
  /** The name of the field in native requests. */
  readonly field: PromptField;
  /** The index of the message, if the field is "messages" and the problem is in one of them. */
  readonly message?: number;
  readonly description: string;
};

export type PromptField =
  | "messages"
  | "temperature"
  | "stop"
  | "top_p"
  | "top_k"
  | "seed"
  | "presence_penalty"
  | "frequency_penalty"
  | "suffix"
  | "tool_choice"
  | "response_format";

export function unsupported(field: PromptField): PromptProblem {
  return { field, description: "is not supported by the upstream of this model" };
}

/** The first of these parameters that the prompt sets; a penalty of 0 counts as unset. */
export function firstSetOf(names: readonly (keyof typeof SAMPLING)[], prompt: UnsizedPrompt): PromptProblem | undefined {
  if (prompt.options === NO_OPTIONS && prompt.stop.length === 0) return undefined;
  const name = names.find((one) => SAMPLING[one](prompt));
  return name && unsupported(name);
}

const SAMPLING = {
  top_k: ({ options }: UnsizedPrompt) => options.topK !== undefined,
  seed: ({ options }: UnsizedPrompt) => options.seed !== undefined,
  presence_penalty: ({ options }: UnsizedPrompt) => (options.presencePenalty ?? 0) !== 0,
  frequency_penalty: ({ options }: UnsizedPrompt) => (options.frequencyPenalty ?? 0) !== 0,
  suffix: ({ options }: UnsizedPrompt) => options.suffix !== undefined,
  stop: ({ stop }: UnsizedPrompt) => stop.length > 0,
};

/** Whether a message consists only of reasoning, which no upstream accepts except the one that created it. */
export function isReasoningAlone({ content, toolCalls, reasoning, toolCallId }: PromptMessage): boolean {
  return content.length === 0 && reasoning !== undefined && !toolCalls && toolCallId === undefined;
}

/** The upstream refuses a request without messages. */
export function reasoningProblem({ messages }: UnsizedPrompt): PromptProblem | undefined {
  if (messages.length === 0 || !messages.every(isReasoningAlone)) return undefined;
  return { field: "messages", description: "must have a message with more than reasoning" };
}

/** The fields that an upstream of the format gets unchanged: the request has the same format, and the model lists them. */
export function extraFieldsOf({ options, traits }: Prompt, format: Format): JsonObject | undefined {
  const { extraFields } = options;
  if (extraFields?.format !== format || traits.extraFields.length === 0) return undefined;
  return listedFields(extraFields.fields, traits.extraFields);
}

/** Whether the model lists a field that the format of its upstreams does not have. */
export function isExtraField({ extraFields }: ModelTraits, name: string): boolean {
  return extraFields.includes(name);
}

/**
 * The Responses API accepts encrypted reasoning only under the id that it had. The formats of callers have one opaque
 * text for it, so the id is in front of it. Encrypted texts are base64, which has no colon.
 */
const ITEM_ID = /^([\w-]{1,200}):/;

export function joinItemId(id: string | undefined, encrypted: string): string {
  const joined = `${id}:${encrypted}`;
  return id !== undefined && ITEM_ID.test(joined) ? joined : encrypted;
}

/** Without an id, the text is of another API, or was encrypted for another client. */
export function splitItemId(text: string): { readonly id: string | undefined; readonly encrypted: string } {
  const [start, id] = ITEM_ID.exec(text) ?? ["", undefined];
  return { id, encrypted: text.slice(start.length) };
}
