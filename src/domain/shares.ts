/** Eighths of the room left by the others that one sharer may take; the rest stays free for new sharers. */
const EIGHTHS = 7;

/**
 * A shared limit. A single sharer may take up to seven eighths; the more others take, the less is left for
 * each.
 */
export class Shares {
  readonly #bySharer = new Map<string, number>();
  #taken = 0;

  get taken(): number {
    return this.#taken;
  }

  /** Takes an amount if there is room within `max`. Without a name, only the total is limited. */
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
