export const RESPONSE_LIMITS = {
  connectMs: 5_000,
  /**
   * Time and size limits from the end of a reply to the end of its response; above them the connection is closed. The
   * time limit also applies to the usage of a reply that was cut.
   */
  drainMs: 1_000,
  drainBytes: 65_536,
  /** Time and size limits for reading an error body for the log. */
  errorBodyMs: 1_000,
  errorBodyBytes: 8_192,
  /** A reply that is not streamed is buffered until it is parsed, so this also limits the parsing time. */
  jsonBytes: 2_097_152,
  eventChars: 1_048_576,
} as const;

/** Total bytes of one streamed response: some servers wrap a token in almost a kilobyte. */
const BASE_BYTES = 1_048_576;
const BYTES_PER_TOKEN = 2_048;

/** Characters per token, well above the average of any tokenizer for prose or code. */
const CHARS_PER_TOKEN = 8;

/**
 * Whether the upstream exceeds max_tokens. A streamed piece has at least one token on most servers; on
 * servers with smaller pieces, the limit on characters allows more pieces.
 */
export function exceedsMaxTokens(maxTokens: number, pieces: number, chars: number): boolean {
  return pieces > maxTokens && chars > maxTokens * CHARS_PER_TOKEN;
}

/** Upper limit on the text when it comes in few pieces: tokens of whitespace can be long. */
export function maxReplyChars(maxTokens: number): number {
  return 1_024 + maxTokens * 128;
}

export function maxStreamBytes(maxTokens: number): number {
  return BASE_BYTES + maxTokens * BYTES_PER_TOKEN;
}

/** Upper limit on signatures and encrypted reasoning, which are not tokens of the reply. */
export function maxOpaqueChars(maxTokens: number): number {
  return 65_536 + maxTokens * 64;
}
