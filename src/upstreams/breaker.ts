export type BreakerState = "closed" | "half_open" | "open";

export type BreakerOptions = {
  /** So many calls that fail, with no reply between them, and nobody asks any more. */
  readonly failuresMax: number;
  /** Then one call tries again, and after each that fails the wait is twice as long, up to the longest. */
  readonly openMs: number;
  readonly longestOpenMs: number;
};

/** Keeps calls away from an upstream that is down, so that they need not find out one by one. */
export class Breaker {
  readonly #options: BreakerOptions;
  readonly #now: () => number;
  readonly #random: () => number;
  #failures = 0;
  /** How often it has opened since all was well. */
  #openings = 0;
  /** Until when nobody asks; undefined while all may. */
  #openUntilMs: number | undefined;
  #probing = false;

  constructor(options: BreakerOptions, now: () => number, random: () => number) {
    this.#options = options;
    this.#now = now;
    this.#random = random;
  }

  get state(): BreakerState {
    if (this.#openUntilMs === undefined) return "closed";
    return this.#probing || this.#now() >= this.#openUntilMs ? "half_open" : "open";
  }

  /** Whether a call may ask the upstream, and whether it is the one that tries. It then says how that ended. */
  enter(): "shut" | "free" | "probe" {
    if (this.#openUntilMs === undefined) return "free";
    if (this.#probing || this.#now() < this.#openUntilMs) return "shut";
    this.#probing = true;
    return "probe";
  }

  /**
   * A reply has begun: the upstream is there. Returns the failures that this forgives, which count again if the reply
   * breaks off. After a probe others may ask again, but a failure now closes the door at once.
   */
  begin(): number {
    if (this.#openUntilMs === undefined) {
      const forgiven = this.#failures;
      this.#failures = 0;
      return forgiven;
    }
    this.#openUntilMs = undefined;
    this.#probing = false;
    this.#failures = this.#options.failuresMax - 1;
    return this.#failures;
  }

  /** It answered, be it with a refusal. */
  succeed(): void {
    this.#openUntilMs = undefined;
    this.#probing = false;
    this.#failures = 0;
    this.#openings = 0;
  }

  fail(isProbe: boolean, forgiven = 0): void {
    // What began before the door was shut has nothing new to tell.
    if (this.#openUntilMs !== undefined && !isProbe) return;
    this.#probing = false;
    this.#failures = Math.max(this.#failures, forgiven) + 1;
    if (this.#failures < this.#options.failuresMax) return;
    const { openMs, longestOpenMs } = this.#options;
    const waitMs = Math.min(openMs * 2 ** this.#openings++, longestOpenMs);
    // Spread out, so that several servers do not all come back at once.
    this.#openUntilMs = this.#now() + waitMs * (0.5 + this.#random());
  }

  /** The reply broke off, of a call that has been counted: what it forgave is not forgiven. */
  takeBack(forgiven: number): void {
    this.#failures = Math.max(this.#failures, forgiven);
  }

  /** The caller left before the upstream showed how it is: another call may find out. */
  leave(isProbe: boolean): void {
    if (isProbe) this.#probing = false;
  }
}
