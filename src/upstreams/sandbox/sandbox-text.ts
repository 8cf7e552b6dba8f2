/** What the sandbox says. Each word is one token, and so is each mark, which a test holds against the tokenizer. */
const OPENING = "This is a reply of the sandbox.";
const SENTENCES = [
  "Every charge is one row in the ledger.",
  "A key can be revoked at any time.",
  "The balance is paid before the call.",
  "Tokens are counted, and then they are paid.",
  "The same prompt has the same reply.",
  "No model was asked for this text.",
  "A limit is a promise to everyone else.",
  "Each row says why the balance changed.",
  "A stream ends with the price of the call.",
  "When the money is gone, the calls end.",
  "A new minute brings new requests.",
  "Keep the key out of the code.",
  "Good errors say what to do next.",
  "Read the row, then read the reason.",
  "One key for one service is enough.",
  "The last word is always counted, too.",
];

const FIRST_TOKENS = tokensOf(OPENING);
const TOKENS = SENTENCES.map((sentence) => tokensOf(` ${sentence}`));

/** A number that is the same for the same texts, and hardly ever for others. */
export function seedOf(texts: readonly string[]): number {
  let hash = 0x811c9dc5;
  for (const text of texts) {
    // The ends of a long text say enough.
    const sample = text.length <= 1_024 ? text : text.slice(0, 512) + text.slice(-512);
    for (let at = 0; at < sample.length; at++) hash = Math.imul(hash ^ sample.charCodeAt(at), 0x01000193);
    hash = Math.imul(hash ^ text.length, 0x01000193);
  }
  return hash >>> 0;
}

/** How long the reply is that comes by itself: the opening and one to three sentences. */
export function usualTokens(seed: number): number {
  let count = FIRST_TOKENS.length;
  let state = seed;
  for (let sentences = 1 + (seed % 3); sentences > 0; sentences--) {
    state = next(state);
    count += pick(state).length;
  }
  return count;
}

/** The tokens of a reply, one by one, without end. */
export function* replyTokens(seed: number): Generator<string, never> {
  yield* FIRST_TOKENS;
  for (let state = next(seed); ; state = next(state)) yield* pick(state);
}

/** How many tokens the first so many characters of the reply take, the last one perhaps in part. */
export function tokensWithin(seed: number, characters: number): number {
  let tokens = 0;
  let seen = 0;
  for (const token of replyTokens(seed)) {
    if (seen >= characters) break;
    seen += token.length;
    tokens++;
  }
  return tokens;
}

function tokensOf(text: string): string[] {
  return text.match(/ ?\w+|[.,]/g) ?? [];
}

function next(state: number): number {
  return (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
}

/** The high bits of such a generator are the good ones. */
function pick(state: number): readonly string[] {
  return TOKENS[state >>> 28] as readonly string[];
}
