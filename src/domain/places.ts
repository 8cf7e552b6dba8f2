/**
 * A collection for many short-lived items. A Set would retain memory: after a rehash, its old table still
 * points to the new one, and once one of them is in V8's old generation, everything that was ever in the set
 * counts as alive and is promoted to the old generation, which is collected last.
 */
export class Places<Item> {
  readonly #items: (Item | undefined)[] = [];
  readonly #free: number[] = [];

  get size(): number {
    return this.#items.length - this.#free.length;
  }

  /** Adds the item and returns its place. */
  add(item: Item): number {
    const place = this.#free.pop() ?? this.#items.length;
    this.#items[place] = item;
    return place;
  }

  /** Call this once for each place that `add` returned. */
  remove(place: number): void {
    this.#items[place] = undefined;
    this.#free.push(place);
  }

  *[Symbol.iterator](): Generator<Item, void, undefined> {
    for (const item of this.#items) if (item !== undefined) yield item;
  }
}
