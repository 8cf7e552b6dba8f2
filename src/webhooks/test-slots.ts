import { DomainError } from "../domain/errors.ts";

/** Tests that run at once. */
const MAX_RUNNING = 16;
/** Accounts with a test that runs or waits. */
const MAX_ACCOUNTS = 256;
/** How long a test keeps its slot while others wait: endpoints that answer need less. */
const SHARE_MS = 2_000;
/** The error of a test that had its share. */
const NO_ANSWER = `The endpoint did not answer within ${SHARE_MS / 1_000} s, and tests of other accounts were waiting.`;

/**
 * The slots of tests, one for each account. When all are taken, the next test waits for one, and ends the oldest test that had its
 * share: endpoints that do not answer delay the tests of other accounts by seconds.
 */
export class TestSlots {
  readonly #accounts = new Set<string>();
  /** Those that had their share, the oldest first. */
  readonly #endable = new Set<AbortController>();
  readonly #waiting: (() => void)[] = [];
  #running = 0;
  /** Those that were ended and still run: each frees a slot for a test that waits. */
  #ending = 0;

  get running(): number {
    return this.#running;
  }

  /** @param send gets the signal that ends it */
  async run<Result>(accountId: string, send: (signal: AbortSignal) => Promise<Result>): Promise<Result> {
    if (this.#accounts.has(accountId) || this.#accounts.size === MAX_ACCOUNTS) {
      throw new DomainError("overloaded", {
        message: "Another test is running. Repeat the test in a few seconds.",
      });
    }
    this.#accounts.add(accountId);
    if (this.#running < MAX_RUNNING) this.#running++;
    else await this.#wait();
    const end = new AbortController();
    const timer = setTimeout(() => {
      this.#endable.add(end);
      this.#endOldest();
    }, SHARE_MS);
    try {
      return await send(end.signal);
    } finally {
      clearTimeout(timer);
      this.#endable.delete(end);
      this.#accounts.delete(accountId);
      if (end.signal.aborted) this.#ending--;
      const next = this.#waiting.shift();
      if (next) next();
      else this.#running--;
    }
  }

  async #wait(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiting.push(resolve);
    this.#endOldest();
    await promise;
  }

  /** Ends the oldest test that had its share, if no slot gets free for a test that waits. */
  #endOldest(): void {
    const [oldest] = this.#endable;
    if (!oldest || this.#waiting.length <= this.#ending) return;
    this.#endable.delete(oldest);
    this.#ending++;
    oldest.abort(new Error(NO_ANSWER));
  }
}
