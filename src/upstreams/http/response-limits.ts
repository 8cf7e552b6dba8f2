/** What one answer of an upstream may cost. Units last in the name. */
export const ANSWER_LIMITS = {
  connectMs: 5_000,
  /** From the end of a reply to the end of the response that carried it; then the connection is given up. */
  lingerMs: 1_000,
  /** How long, and how much, of the body of an error is read for the log. */
  errorBodyMs: 1_000,
  errorBodyBytes: 8_192,
  /** A reply that comes whole is kept until it is parsed, so this also bounds how long the parser works. */
  jsonBytes: 2_097_152,
  eventChars: 1_048_576,
  /** Everything that comes over the wire for one reply: some servers wrap a token into almost a kilobyte. */
  wireBytes: 1_048_576,
  wireBytesPerToken: 2_048,
  /** A reader who is slower than the upstream holds it up from here on. */
  unreadChars: 65_536,
} as const;

/** Text of a token, well above what any tokenizer makes of prose or code on average. */
const CHARS_PER_TOKEN = 8;

/**
 * Whether the upstream goes on beyond what it was allowed. A piece holds at least one token where tokens are streamed
 * as they come; servers that cut them smaller stay below the text of so many tokens.
 */
export function isBeyond(maxTokens: number, pieces: number, chars: number): boolean {
  return pieces > maxTokens && chars > maxTokens * CHARS_PER_TOKEN;
}

/** The last bound on text in few pieces: tokens of whitespace can be long. */
export function charsMax(maxTokens: number): number {
  return 1_024 + maxTokens * 128;
}

export function wireBytesMax(maxTokens: number): number {
  return ANSWER_LIMITS.wireBytes + maxTokens * ANSWER_LIMITS.wireBytesPerToken;
}
