import { NO_OPTIONS, type Prompt } from "../domain/prompt.ts";

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

/** Of the sampling parameters in the list, the first one that the prompt sets. A penalty of 0 has no effect. */
export function firstSetOf(
  names: readonly (keyof typeof SAMPLING)[],
  prompt: UnsizedPrompt,
): PromptProblem | undefined {
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
