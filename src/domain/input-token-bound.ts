import type { PromptMessage } from "./prompt.ts";

/** What a message costs beyond its content: its role and its borders. */
export const MESSAGE_TOKENS = 4;

/** The most tokens the messages can have: no tokenizer over bytes makes more tokens of a text than it has bytes. */
export function inputTokenBound(messages: readonly PromptMessage[]): number {
  let bound = 0;
  for (const { content } of messages) bound += Buffer.byteLength(content, "utf8") + MESSAGE_TOKENS;
  return bound;
}
