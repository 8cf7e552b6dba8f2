/** A conversation and its parameters, independent of the caller's API. */
export type Prompt = {
  readonly messages: readonly PromptMessage[];
  readonly maxTokens: number;
  readonly temperature: number | undefined;
  /** The reply ends before any of these texts. */
  readonly stop: readonly string[];
};

export type PromptMessage = {
  readonly role: "system" | "user" | "assistant";
  readonly content: string;
};

export type FinishReason = "stop" | "length";

export type TokenUsage = { readonly inputTokens: number; readonly outputTokens: number };
