/**
 * Things that come and go by the thousand. A Set would hold them, but whenever one has tidied itself up, its table of
 * before still points to that of after: as soon as one of them is old, V8 takes all that was ever in the set for alive,
 * and carries it over to where garbage is looked for last.
 */
export class Places<Item> {
  readonly #items: (Item | undefined)[] = [];
  readonly #free: number[] = [];

  get size(): number {
    return this.#items.length - this.#free.length;
  }

  /** The place it has from now on. */
  add(item: Item): number {
    const place = this.#free.pop() ?? this.#items.length;
    this.#items[place] = item;
    return place;
  }

  /** Once for each place that was given. */
  remove(place: number): void {
    this.#items[place] = undefined;
    this.#free.push(place);
  }

  *[Symbol.iterator](): Generator<Item, void, undefined> {
    for (const item of this.#items) if (item !== undefined) yield item;
  }
}
