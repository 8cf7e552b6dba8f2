import type { PromptMessage } from "../domain/generation.ts";

/** Counts tokens, off the main thread where that takes long. */
export type Tokens = {
  /** A prompt of more than `most` tokens need not be counted to its end. */
  countPrompt(messages: readonly PromptMessage[], signal?: AbortSignal, most?: number): Promise<number>;
  countText(text: string, signal?: AbortSignal): Promise<number>;
};
