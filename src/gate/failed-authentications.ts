/**
 * Counts calls with unknown keys per remote address and minute, so that guessing cannot load the database. Only
 * keys that are well-formed get as far as being counted; the checksum turns the others away for free.
 */
export class FailedAuthentications {
  readonly #limit: number;
  readonly #now: () => number;
  readonly #counts = new Map<string, number>();
  #minute = 0;

  /** No limit if 0. */
  constructor(limitPerMinute: number, now: () => number) {
    this.#limit = limitPerMinute;
    this.#now = now;
  }

  /** Seconds until calls from the address are looked at again; 0 if they are now. */
  blockedSeconds(address: string): number {
    if (this.#limit === 0) return 0;
    this.#turn();
    if ((this.#counts.get(address) ?? 0) < this.#limit) return 0;
    return 60 - (Math.floor(this.#now() / 1000) % 60);
  }

  add(address: string): void {
    if (this.#limit === 0) return;
    this.#turn();
    const count = this.#counts.get(address);
    if (count === undefined && this.#counts.size >= MAX_ADDRESSES) return;
    this.#counts.set(address, (count ?? 0) + 1);
  }

  #turn(): void {
    const minute = Math.floor(this.#now() / 60_000);
    if (minute === this.#minute) return;
    this.#minute = minute;
    this.#counts.clear();
  }
}

/** Bounds the memory that many addresses can take in one minute. */
const MAX_ADDRESSES = 100_000;
