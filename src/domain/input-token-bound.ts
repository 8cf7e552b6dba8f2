import type { PromptMessage } from "./generation.ts";

/** What marks a message's role and its ends, and the start of the reply, in any chat format we know of. */
export const TOKENS_PER_MESSAGE = 8;
export const TOKENS_PER_PROMPT = 8;

/** No byte-level tokenizer makes more tokens of a text than it has bytes. */
export function inputTokenBound(messages: readonly PromptMessage[]): number {
  let bound = TOKENS_PER_PROMPT;
  for (const { content } of messages) bound += Buffer.byteLength(content) + TOKENS_PER_MESSAGE;
  return bound;
}
