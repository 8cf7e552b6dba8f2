/**
 * A number of slots that all remote addresses share. An address gets another slot while it holds fewer slots
 * than are free. So one address gets at most half of them, and other addresses still get some.
 */
export class AddressShares {
  readonly #slots: number;
  readonly #held = new Map<string, number>();
  #inUse = 0;

  constructor(slots: number) {
    this.#slots = slots;
  }

  /** False if the address already has its share. The caller releases each acquired slot. */
  acquire(address: string): boolean {
    const held = this.#held.get(address) ?? 0;
    if (held >= this.#slots - this.#inUse) return false;
    this.#held.set(address, held + 1);
    this.#inUse++;
    return true;
  }

  release(address: string): void {
    const remaining = (this.#held.get(address) ?? 0) - 1;
    if (remaining > 0) this.#held.set(address, remaining);
    else this.#held.delete(address);
    this.#inUse--;
  }
}
