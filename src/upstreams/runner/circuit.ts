export type CircuitState = "closed" | "half_open" | "open";

export type CircuitOptions = {
  /** The first open period. Each failed probe doubles it, up to the maximum. */
  readonly openMs: number;
  /** The longest open period, and the time after which a probe without a result expires. */
  readonly maxOpenMs: number;
};

export type CircuitTools = {
  /** A monotonic clock in milliseconds. */
  readonly now: () => number;
  /** In the range [0, 1). */
  readonly random: () => number;
};

/** A circuit breaker. When open, it allows one probe at a time, after a wait that grows. */
export class Circuit {
  readonly #options: CircuitOptions;
  readonly #tools: CircuitTools;
  /** Openings since the last reset. */
  #openings = 0;
  /** Undefined while closed. */
  #openUntilMs: number | undefined;
  /** Undefined when no probe runs. */
  #probingUntilMs: number | undefined;

  constructor(options: CircuitOptions, tools: CircuitTools) {
    this.#options = options;
    this.#tools = tools;
  }

  get isClosed(): boolean {
    return this.#openUntilMs === undefined;
  }

  get state(): CircuitState {
    if (this.#openUntilMs === undefined) return "closed";
    return this.#tools.now() >= this.#openUntilMs ? "half_open" : "open";
  }

  /** True if the call may probe now. The right to probe expires, so a slow call does not block the others. */
  tryProbe(): boolean {
    const now = this.#tools.now();
    if (this.#openUntilMs === undefined || now < this.#openUntilMs) return false;
    if (this.#probingUntilMs !== undefined && now < this.#probingUntilMs) return false;
    this.#probingUntilMs = now + this.#options.maxOpenMs;
    return true;
  }

  /** Ends the probe without a result, so another call may probe. */
  cancelProbe(): void {
    this.#probingUntilMs = undefined;
  }

  open(): void {
    const { openMs, maxOpenMs } = this.#options;
    const waitMs = Math.min(openMs * 2 ** this.#openings++, maxOpenMs);
    // Random, so that several servers do not probe at the same moment.
    this.#openUntilMs = this.#tools.now() + waitMs * (0.5 + this.#tools.random());
    this.#probingUntilMs = undefined;
  }

  /**
   * Closes the circuit when the reply to a probe begins. If that reply fails, the next open period is
   * longer.
   */
  close(): void {
    this.#openUntilMs = undefined;
    this.#probingUntilMs = undefined;
  }

  /** Called after a complete reply: the next open period is short again. */
  reset(): void {
    this.close();
    this.#openings = 0;
  }
}
