import { countTokens, encode, setMergeCacheSize } from "gpt-tokenizer/encoding/cl100k_base";
import { Cl100KBase } from "gpt-tokenizer/encodingParams/cl100k_base";
import { codePointEnd } from "../domain/text.ts";
import { bytesOfTokens } from "./token-bytes.ts";

/**
 * The library takes quadratic time in the length of a word, so the parts of a longer word are counted separately.
 * Words of natural languages are shorter.
 */
const MAX_WORD_CHARACTERS = 128;
const WORD = Cl100KBase([]).tokenSplitRegex;

/** The library counts a byte order mark as two tokens; the encoding has one for it. */
const BYTE_ORDER_MARK = "\ufeff";

/** Text that looks like a special token is plain text. */
const OPTIONS = { disallowedSpecial: new Set<string>() };

/** At most 4 MiB; callers could fill the library's default of 100,000 words with more than 100 MiB. */
const CACHED_WORDS = 1_000;
setMergeCacheSize(CACHED_WORDS);

/** The number of tokens of cl100k_base in all texts together. */
export function countTexts(texts: readonly string[]): number {
  let tokens = 0;
  for (const text of texts) {
    const parts = text.split(BYTE_ORDER_MARK);
    tokens += parts.length - 1;
    for (const part of parts) tokens += countText(part);
  }
  return tokens;
}

/**
 * The start of the text that has at most this many tokens, and their number. The last token can end inside a character,
 * which is left out.
 */
export function firstTokens(text: string, maxTokens: number): { text: string; tokens: number } {
  let tokens = 0;
  let start = 0;
  for (const word of shortWordsOf(text)) {
    const encoded = encode(word, OPTIONS);
    if (tokens + encoded.length > maxTokens) {
      const bytes = bytesOfTokens(encoded.slice(0, maxTokens - tokens));
      const within = new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes, { stream: true });
      return { text: text.slice(0, start) + within, tokens: maxTokens };
    }
    tokens += encoded.length;
    start += word.length;
  }
  return { text, tokens };
}

function* shortWordsOf(text: string): Generator<string> {
  for (const [word] of text.matchAll(WORD)) yield* partsOf(word);
}

function* partsOf(word: string): Generator<string> {
  for (let start = 0; start < word.length; ) {
    const end = codePointEnd(word, start + MAX_WORD_CHARACTERS);
    yield word.slice(start, end);
    start = end;
  }
}

function countText(text: string): number {
  let tokens = 0;
  let start = 0;
  for (const { 0: word, index } of text.matchAll(WORD)) {
    if (word.length <= MAX_WORD_CHARACTERS) continue;
    tokens += countTokens(text.slice(start, index), OPTIONS);
    for (const part of partsOf(word)) tokens += countTokens(part, OPTIONS);
    start = index + word.length;
  }
  return tokens + countTokens(text.slice(start), OPTIONS);
}
