import { DomainError } from "./errors.ts";

/** Bounds the memory. More callers in one minute are not counted. */
const MAX_CALLERS = 100_000;

/** Bounds the calls of each caller per minute in this process: anyone may be able to sign up. */
export class CallRate {
  readonly #maxPerMinute: number;
  readonly #now: () => number;
  #minute = 0;
  readonly #calls = new Map<string, number>();

  /** @param now the time in milliseconds */
  constructor(maxPerMinute: number, now: () => number) {
    this.#maxPerMinute = maxPerMinute;
    this.#now = now;
  }

  /** Throws if the caller has made as many calls in this minute. */
  add(caller: string): void {
    const seconds = Math.floor(this.#now() / 1_000);
    const minute = Math.floor(seconds / 60);
    if (minute !== this.#minute) {
      this.#minute = minute;
      this.#calls.clear();
    }
    const calls = (this.#calls.get(caller) ?? 0) + 1;
    if (calls > this.#maxPerMinute) {
      const retryAfterSeconds = 60 - (seconds % 60);
      throw new DomainError("rate_limit_exceeded", {
        message: `The limit of ${this.#maxPerMinute} of these calls per minute is exceeded. Wait ${retryAfterSeconds} s.`,
        retryAfterSeconds,
      });
    }
    if (calls > 1 || this.#calls.size < MAX_CALLERS) this.#calls.set(caller, calls);
  }
}
