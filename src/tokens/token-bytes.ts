import ranks from "gpt-tokenizer/bpeRanks/cl100k_base";

/**
 * The bytes that tokens of cl100k_base encode; undefined if a number is not a token of it. A token can end inside a
 * character. The library's `decode` keeps such a part for its next call, which may be of another account.
 */
export function bytesOfTokens(tokens: readonly number[]): Buffer | undefined {
  const parts: Buffer[] = [];
  for (const token of tokens) {
    const part = ranks[token];
    if (part === undefined) return undefined;
    // A text, or the bytes if they are not the UTF-8 of one.
    parts.push(Buffer.from(part as string));
  }
  return Buffer.concat(parts);
}
