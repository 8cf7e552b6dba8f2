import type { PromptMessage } from "./prompt.ts";

/** Tokens of a message in addition to its content: its role and delimiters. */
export const MESSAGE_TOKENS = 4;

/** Maximum tokens of the messages: a byte-level tokenizer makes at most one token per byte. */
export function inputTokenBound(messages: readonly PromptMessage[]): number {
  let bound = 0;
  for (const { content } of messages) bound += Buffer.byteLength(content, "utf8") + MESSAGE_TOKENS;
  return bound;
}
