/**
 * A collection for many short-lived items. A Set would retain memory: after a rehash, its old table still
 * points to the new one, and once one of them is in V8's old generation, everything that was ever in the set
 * counts as alive and is promoted to the old generation, which is collected last.
 */
export class SlotArray<Item> {
  readonly #items: (Item | undefined)[] = [];
  readonly #freeSlots: number[] = [];

  get size(): number {
    return this.#items.length - this.#freeSlots.length;
  }

  insert(item: Item): number {
    const slot = this.#freeSlots.pop() ?? this.#items.length;
    this.#items[slot] = item;
    return slot;
  }

  /** Call this once for each slot that `insert` returned. */
  remove(slot: number): void {
    this.#items[slot] = undefined;
    this.#freeSlots.push(slot);
  }

  *[Symbol.iterator](): Generator<Item, void, undefined> {
    for (const item of this.#items) if (item !== undefined) yield item;
  }
}
