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
    const network = networkOf(address);
    const held = this.#held.get(network) ?? 0;
    if (held >= this.#places - this.#taken) return false;
    this.#held.set(network, held + 1);
    this.#taken++;
    return true;
  }

  release(address: string): void {
    const network = networkOf(address);
    const left = (this.#held.get(network) ?? 0) - 1;
    if (left > 0) this.#held.set(network, left);
    else this.#held.delete(network);
    this.#taken--;
  }
}

/** Every host with IPv6 has a /64 of its own, so the first 64 bits count as one address. */
export function networkOf(address: string): string {
  if (!address.includes(":")) return address;
  const mapped = /^::ffff:([\d.]+)$/.exec(address);
  if (mapped) return mapped[1] as string;
  const [before = "", after = ""] = address.split("::");
  const first = before === "" ? [] : before.split(":");
  const last = after === "" ? [] : after.split(":");
  const zeros = Array<string>(Math.max(8 - first.length - last.length, 0)).fill("0");
  return [...first, ...zeros, ...last].slice(0, 4).join(":");
}
