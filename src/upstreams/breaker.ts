export type BreakerState = "closed" | "half_open" | "open";

export type BreakerOptions = {
  /** So many failures, with no success between them, and nobody asks any more. */
  readonly failuresMax: number;
  /** Then one call tries again. */
  readonly openMs: number;
};

/** Keeps calls away from an upstream that is down, so that they need not find out one by one. */
export class Breaker {
  readonly #options: BreakerOptions;
  readonly #now: () => number;
  readonly #random: () => number;
  #failures = 0;
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

  /** The reply has begun. Others may ask again, but a failure now closes the door at once. */
  begin(): void {
    if (this.#openUntilMs === undefined) return;
    this.#openUntilMs = undefined;
    this.#probing = false;
    this.#failures = this.#options.failuresMax - 1;
  }

  /** It answered, be it with a refusal. */
  succeed(): void {
    this.#openUntilMs = undefined;
    this.#probing = false;
    this.#failures = 0;
  }

  fail(isProbe: boolean): void {
    // What began before the door was shut has nothing new to tell.
    if (this.#openUntilMs !== undefined && !isProbe) return;
    this.#probing = false;
    this.#failures++;
    if (this.#failures < this.#options.failuresMax) return;
    // Spread out, so that several servers do not all come back at once.
    this.#openUntilMs = this.#now() + this.#options.openMs * (0.5 + this.#random());
  }

  /** The caller left before the upstream showed how it is: another call may find out. */
  leave(isProbe: boolean): void {
    if (isProbe) this.#probing = false;
  }
}
