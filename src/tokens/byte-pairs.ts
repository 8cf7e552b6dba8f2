/** Maximum UTF-8 bytes per UTF-16 unit; a surrogate pair takes four bytes. */
const BYTES_PER_UNIT_MAX = 3;

/** Higher than any rank. */
const NO_RANK = 0x7fffffff;

/**
 * Byte pair encoding: a word is split into bytes, and the adjacent pair whose union has the lowest rank is
 * merged until no union has a rank. Bytes are strings of code units below 256, so that they can be map keys.
 */
export class BytePairs {
  readonly #ranks: ReadonlyMap<string, number>;
  readonly #words: RegExp;
  /** Start of each part of the word, and the rank of its union with the next part. */
  readonly #starts: Uint16Array;
  readonly #unions: Int32Array;

  /** `unitsMax` is the maximum length of a text; each match of `words` is merged separately. */
  constructor(ranks: ReadonlyMap<string, number>, words: RegExp, unitsMax: number) {
    this.#ranks = ranks;
    this.#words = words;
    this.#starts = new Uint16Array(unitsMax * BYTES_PER_UNIT_MAX + 1);
    this.#unions = new Int32Array(unitsMax * BYTES_PER_UNIT_MAX + 1);
  }

  count(text: string): number {
    let tokens = 0;
    for (const word of text.match(this.#words) ?? []) {
      const bytes = bytesOf(word);
      tokens += this.#ranks.has(bytes) ? 1 : this.#merge(bytes);
    }
    return tokens;
  }

  /** The number of parts after all merges. */
  #merge(bytes: string): number {
    const starts = this.#starts;
    const unions = this.#unions;
    let parts = bytes.length;
    for (let i = 0; i <= parts; i++) starts[i] = i;
    const union = (i: number) =>
      i + 1 < parts ? (this.#ranks.get(bytes.slice(starts[i], starts[i + 2])) ?? NO_RANK) : NO_RANK;
    for (let i = 0; i < parts; i++) unions[i] = union(i);
    for (;;) {
      let lowest = 0;
      for (let i = 1; i < parts; i++) if ((unions[i] as number) < (unions[lowest] as number)) lowest = i;
      if (unions[lowest] === NO_RANK) return parts;
      starts.copyWithin(lowest + 1, lowest + 2, parts + 1);
      unions.copyWithin(lowest + 1, lowest + 2, parts);
      parts--;
      unions[lowest] = union(lowest);
      if (lowest > 0) unions[lowest - 1] = union(lowest - 1);
    }
  }
}

function bytesOf(word: string): string {
  for (let i = 0; i < word.length; i++) {
    if (word.charCodeAt(i) > 0x7f) return Buffer.from(word).toString("latin1");
  }
  return word;
}
