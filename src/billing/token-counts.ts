import type { CountOptions } from "../domain/count-options.ts";
import type { PromptInput } from "../domain/prompt-texts.ts";

/** Counts tokens. Long texts are counted off the main thread. */
export type Tokens = {
  countPrompt(prompt: PromptInput, options?: CountOptions): number | Promise<number>;
  countTexts(texts: readonly string[], options?: CountOptions): Promise<number>;
};
