import { DomainError } from "../../domain/errors.ts";
import { networkOf } from "../../domain/network.ts";

/**
 * Bounds the memory for the addresses of one minute. Further addresses are not counted: blocking them would
 * let one attacker block everyone, and with so many addresses a limit per address has no effect.
 */
const MAX_ADDRESSES = 100_000;
/** Per set; two sets of SHA-256 in hex take about 10 MiB. */
const MAX_KNOWN_KEYS = 50_000;

/**
 * Counts calls with unknown, revoked and expired keys per remote address and minute, so that such calls
 * cannot load the database. Malformed keys are not counted: they fail the checksum and are refused without a
 * look-up.
 *
 * Many callers may share an address, behind a proxy or a company's gateway. Failures of some must not block
 * the others, so a key that this process recently found valid is always looked up. That decides only whether
 * the database is queried, never the result: admission refuses a key that was revoked since, and the key is
 * removed here.
 */
export class FailedAuthentications {
  readonly #limit: number;
  readonly #now: () => number;
  readonly #counts = new Map<string, number>();
  readonly #validKeys = new RecentMap<true>(MAX_KNOWN_KEYS);
  #minute = 0;

  /** 0 means no limit. */
  constructor(limitPerMinute: number, now: () => number) {
    this.#limit = limitPerMinute;
    this.#now = now;
  }

  /** Throws if a call with this key from this address is not looked up in this minute. */
  refuseBlocked(address: string, fingerprint: string): void {
    const retryAfterSeconds = this.blockedSeconds(address, fingerprint);
    if (retryAfterSeconds > 0) throw new DomainError("too_many_failed_authentications", { retryAfterSeconds });
  }

  /** Seconds until a call with this key from this address is looked up; 0 if it is looked up now. */
  blockedSeconds(address: string, fingerprint: string): number {
    this.#startMinute();
    if (this.#counts.size === 0) return 0;
    const count = this.#counts.get(networkOf(address)) ?? 0;
    if (count < this.#limit || this.#validKeys.get(fingerprint)) return 0;
    return 60 - (Math.floor(this.#now() / 1000) % 60);
  }

  /** Records a call with an unknown, revoked or expired key. */
  addFailure(address: string, fingerprint: string): void {
    if (this.#limit === 0) return;
    this.#validKeys.delete(fingerprint);
    this.#startMinute();
    const network = networkOf(address);
    const count = this.#counts.get(network);
    if (count === undefined && this.#counts.size >= MAX_ADDRESSES) return;
    this.#counts.set(network, (count ?? 0) + 1);
  }

  /** Records a valid key, even if the call was refused for another reason. */
  addValid(fingerprint: string): void {
    if (this.#limit > 0) this.#validKeys.set(fingerprint, true);
  }

  #startMinute(): void {
    const minute = Math.floor(this.#now() / 60_000);
    if (minute === this.#minute) return;
    this.#minute = minute;
    this.#counts.clear();
  }
}

/**
 * A map that keeps the entries that were set lately, in two halves: when the younger one is full, it replaces the older one. So it
 * has at least as many entries as fit in one half.
 */
export class RecentMap<Value> {
  readonly #maxPerHalf: number;
  #younger = new Map<string, Value>();
  #older = new Map<string, Value>();

  constructor(maxPerHalf: number) {
    this.#maxPerHalf = maxPerHalf;
  }

  get(key: string): Value | undefined {
    return this.#younger.get(key) ?? this.#older.get(key);
  }

  set(key: string, value: Value): void {
    if (this.#younger.size >= this.#maxPerHalf && !this.#younger.has(key)) {
      this.#older = this.#younger;
      this.#younger = new Map();
    }
    this.#younger.set(key, value);
  }

  delete(key: string): void {
    this.#younger.delete(key);
    this.#older.delete(key);
  }
}
