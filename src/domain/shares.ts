/** Nobody gets the last eighth of what the others have left: there is always room for one more. */
const EIGHTHS = 7;

/** Room that several share. Who is alone may have nearly all of it, and the more others have, the less. */
export class Shares {
  readonly #bySharer = new Map<string, number>();
  #taken = 0;

  get taken(): number {
    return this.#taken;
  }

  /** Takes an amount of `max`, if there is room for it; someone without a name is bounded by that alone. */
  take(sharer: string | undefined, amount: number, max: number): boolean {
    if (this.#taken + amount > max) return false;
    if (sharer !== undefined) {
      const mine = this.#bySharer.get(sharer) ?? 0;
      if ((mine + amount) * 8 > (max - (this.#taken - mine)) * EIGHTHS) return false;
      this.#bySharer.set(sharer, mine + amount);
    }
    this.#taken += amount;
    return true;
  }

  give(sharer: string | undefined, amount: number): void {
    this.#taken -= amount;
    if (sharer === undefined) return;
    const mine = (this.#bySharer.get(sharer) ?? 0) - amount;
    if (mine > 0) this.#bySharer.set(sharer, mine);
    else this.#bySharer.delete(sharer);
  }
}
