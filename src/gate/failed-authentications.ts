/** Bounds the memory that many addresses can take in one minute. */
const MAX_ADDRESSES = 100_000;
/** How many keys are remembered; the ones that came first are forgotten first. */
const MAX_KNOWN_KEYS = 20_000;

/**
 * Counts calls with unknown keys per remote address and minute, so that guessing cannot load the database. Only
 * keys that are well-formed get as far as being counted; the checksum turns the others away for free.
 *
 * Many callers may share an address, behind a proxy or a company's gateway. A guesser among them must not lock the
 * others out, so keys that were admitted here before are looked at all the same. That decides only whether the
 * database is asked, never what it answers: a revoked key is refused by admission like any other.
 */
export class FailedAuthentications {
  readonly #limit: number;
  readonly #now: () => number;
  readonly #counts = new Map<string, number>();
  readonly #knownKeys = new Set<string>();
  #minute = 0;

  /** No limit if 0. */
  constructor(limitPerMinute: number, now: () => number) {
    this.#limit = limitPerMinute;
    this.#now = now;
  }

  /** Seconds until a call with this key from the address is looked at; 0 if it is now. */
  blockedSeconds(address: string, fingerprint: string): number {
    if (this.#limit === 0) return 0;
    this.#turn();
    if ((this.#counts.get(address) ?? 0) < this.#limit || this.#knownKeys.has(fingerprint)) return 0;
    return 60 - (Math.floor(this.#now() / 1000) % 60);
  }

  add(address: string): void {
    if (this.#limit === 0) return;
    this.#turn();
    const count = this.#counts.get(address);
    if (count === undefined && this.#counts.size >= MAX_ADDRESSES) return;
    this.#counts.set(address, (count ?? 0) + 1);
  }

  /** Notes a key that was admitted. */
  remember(fingerprint: string): void {
    if (this.#limit === 0 || this.#knownKeys.has(fingerprint)) return;
    if (this.#knownKeys.size >= MAX_KNOWN_KEYS) {
      for (const oldest of this.#knownKeys) {
        this.#knownKeys.delete(oldest);
        break;
      }
    }
    this.#knownKeys.add(fingerprint);
  }

  #turn(): void {
    const minute = Math.floor(this.#now() / 60_000);
    if (minute === this.#minute) return;
    this.#minute = minute;
    this.#counts.clear();
  }
}
