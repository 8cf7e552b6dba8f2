/**
 * The fingerprints of recently used keys, in two sets: when the younger one is full, it replaces the older
 * one. So at least as many keys as fit in one set are known, and a key in use is never dropped before an
 * unused one.
 */
export class KnownKeys {
  readonly #maxPerSet: number;
  #younger = new Set<string>();
  #older = new Set<string>();

  constructor(maxPerSet: number) {
    this.#maxPerSet = maxPerSet;
  }

  has(fingerprint: string): boolean {
    return this.#younger.has(fingerprint) || this.#older.has(fingerprint);
  }

  remember(fingerprint: string): void {
    if (this.#younger.has(fingerprint)) return;
    if (this.#younger.size >= this.#maxPerSet) {
      this.#older = this.#younger;
      this.#younger = new Set();
    }
    this.#younger.add(fingerprint);
  }

  delete(fingerprint: string): void {
    this.#younger.delete(fingerprint);
    this.#older.delete(fingerprint);
  }
}
