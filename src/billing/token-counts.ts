import type { CountOptions } from "../domain/count-options.ts";
import type { PromptInput } from "../domain/prompt-texts.ts";

/** Counts tokens. Long texts are counted off the main thread. */
export type Tokens = {
  countPrompt(prompt: PromptInput, options?: CountOptions): number | Promise<number>;
  countTexts(texts: readonly string[], options?: CountOptions): Promise<number>;
  /** From a random sample, for texts that cannot be counted in time. */
  estimatePrompt(prompt: PromptInput): Promise<number>;
  estimateTexts(texts: readonly string[]): Promise<number>;
};
