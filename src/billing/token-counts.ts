import type { CountOptions } from "../domain/count-options.ts";
import type { PromptMessage } from "../domain/prompt.ts";

/** Counts tokens. Long texts are counted off the main thread. */
export type Tokens = {
  countPrompt(messages: readonly PromptMessage[], options?: CountOptions): Promise<number>;
  countText(text: string, options?: CountOptions): Promise<number>;
};
