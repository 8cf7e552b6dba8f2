/**
 * A map that keeps the entries that were set lately, in two halves: when the younger one is full, it replaces the older one. So it
 * has at least as many entries as fit in one half.
 */
export class RecentMap<Value> {
  readonly #maxPerHalf: number;
  #younger = new Map<string, Value>();
  #older = new Map<string, Value>();

  constructor(maxPerHalf: number) {
    this.#maxPerHalf = maxPerHalf;
  }

  get(key: string): Value | undefined {
    return this.#younger.get(key) ?? this.#older.get(key);
  }

  set(key: string, value: Value): void {
    if (this.#younger.size >= this.#maxPerHalf && !this.#younger.has(key)) {
      this.#older = this.#younger;
      this.#younger = new Map();
    }
    this.#younger.set(key, value);
  }

  delete(key: string): void {
    this.#younger.delete(key);
    this.#older.delete(key);
  }
}
