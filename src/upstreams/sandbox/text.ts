/**
 * The sandbox's text. Each word and each punctuation mark is one token; a test compares this with the
 * tokenizer.
 */
const OPENING = "This is a reply of the sandbox.";
const SENTENCES = [
  "Every charge is one row in the ledger.",
  "A key can be revoked at any time.",
  "The balance is paid before the call.",
  "Tokens are counted, and then they are paid.",
  "The same prompt has the same reply.",
  "No model was used for this text.",
  "A limit is a promise to everyone else.",
  "Each row says why the balance changed.",
  "A stream ends with the price of the call.",
  "When the balance is zero, the calls end.",
  "A new minute brings new requests.",
  "Keep the key out of the code.",
  "Good errors say what to do next.",
  "Read the row, then read the reason.",
  "One key for one service is enough.",
  "The last word is always counted, too.",
];

const FIRST_TOKENS = tokensOf(OPENING);
const TOKENS = SENTENCES.map((sentence) => tokensOf(` ${sentence}`));

/** A hash of the texts. */
export function seedOf(texts: readonly string[]): number {
  let hash = 0x811c9dc5;
  for (const text of texts) {
    // For a long text, both ends are enough.
    const sample = text.length <= 1_024 ? text : text.slice(0, 512) + text.slice(-512);
    for (let at = 0; at < sample.length; at++) hash = Math.imul(hash ^ sample.charCodeAt(at), 0x01000193);
    hash = Math.imul(hash ^ text.length, 0x01000193);
  }
  return hash >>> 0;
}

/** Default length of a reply in tokens: the opening and one to three sentences. */
export function usualTokens(seed: number): number {
  let count = FIRST_TOKENS.length;
  let state = seed;
  for (let sentences = 1 + (seed % 3); sentences > 0; sentences--) {
    state = next(state);
    count += pick(state).length;
  }
  return count;
}

/** Returns the next token at each call. */
export type NextToken = () => string;

/** An endless reply. A stream calls this for each token: a generator would cost three times as much. */
export function replyTokens(seed: number): NextToken {
  let state = seed;
  let sentence: readonly string[] = FIRST_TOKENS;
  let at = 0;
  return () => {
    if (at === sentence.length) {
      state = next(state);
      sentence = pick(state);
      at = 0;
    }
    return sentence[at++] as string;
  };
}

/** The text of a reply of the default length. */
export function sentencesOf(seed: number): string {
  return Array.from({ length: usualTokens(seed) }, replyTokens(seed)).join("");
}

/** Number of tokens in the first `characters` of the reply; a partial last token counts. */
export function tokensWithin(nextToken: NextToken, characters: number): number {
  let tokens = 0;
  for (let seen = 0; seen < characters; tokens++) seen += nextToken().length;
  return tokens;
}

function tokensOf(text: string): string[] {
  return text.match(/ ?\w+|[.,]/g) ?? [];
}

function next(state: number): number {
  return (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
}

/** Uses the high bits: the low bits of a linear congruential generator are less random. */
function pick(state: number): readonly string[] {
  return TOKENS[state >>> 28] as readonly string[];
}
