/**
 * A number of places that all remote addresses share. An address gets another place while it holds fewer than
 * are free: a single address gets at most half of them, and each further address still finds some.
 */
export class AddressShares {
  readonly #places: number;
  readonly #held = new Map<string, number>();
  #taken = 0;

  constructor(places: number) {
    this.#places = places;
  }

  /** False if the address already has its share. The caller releases each place it took. */
  take(address: string): boolean {
    const held = this.#held.get(address) ?? 0;
    if (held >= this.#places - this.#taken) return false;
    this.#held.set(address, held + 1);
    this.#taken++;
    return true;
  }

  release(address: string): void {
    const left = (this.#held.get(address) ?? 0) - 1;
    if (left > 0) this.#held.set(address, left);
    else this.#held.delete(address);
    this.#taken--;
  }
}
