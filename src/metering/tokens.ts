import type { PromptMessage } from "../domain/generation.ts";

/** Counts tokens, off the main thread where that takes long. */
export type Tokens = {
  countPrompt(messages: readonly PromptMessage[], signal?: AbortSignal): Promise<number>;
  countText(text: string, signal?: AbortSignal): Promise<number>;
};
