export type CircuitState = "closed" | "half_open" | "open";

export type CircuitOptions = {
  /** How long it stays open at first. Each failed probe doubles that, up to the maximum. */
  readonly openMs: number;
  readonly maxOpenMs: number;
};

export type CircuitTools = {
  /** Milliseconds that never go back. */
  readonly now: () => number;
  /** From 0 to below 1. */
  readonly random: () => number;
};

/** Whether calls may pass. Once open it lets one call at a time probe, after a wait that grows. */
export class Circuit {
  readonly #options: CircuitOptions;
  readonly #tools: CircuitTools;
  /** How often it has opened since the last reset. */
  #openings = 0;
  /** Undefined while closed. */
  #openUntilMs: number | undefined;
  #probing = false;

  constructor(options: CircuitOptions, tools: CircuitTools) {
    this.#options = options;
    this.#tools = tools;
  }

  get isClosed(): boolean {
    return this.#openUntilMs === undefined;
  }

  get state(): CircuitState {
    if (this.#openUntilMs === undefined) return "closed";
    return this.#probing || this.#tools.now() >= this.#openUntilMs ? "half_open" : "open";
  }

  /** True for the one call that may probe now. */
  tryProbe(): boolean {
    if (this.#openUntilMs === undefined || this.#probing || this.#tools.now() < this.#openUntilMs)
      return false;
    this.#probing = true;
    return true;
  }

  /** The probe ended without a result: another call may probe. */
  cancelProbe(): void {
    this.#probing = false;
  }

  open(): void {
    const { openMs, maxOpenMs } = this.#options;
    const waitMs = Math.min(openMs * 2 ** this.#openings++, maxOpenMs);
    // Random, so that several servers do not probe at the same moment.
    this.#openUntilMs = this.#tools.now() + waitMs * (0.5 + this.#tools.random());
    this.#probing = false;
  }

  /** The reply of a probe has begun. Should it break off, the next wait is longer still. */
  close(): void {
    this.#openUntilMs = undefined;
    this.#probing = false;
  }

  /** A whole reply: the next wait is short again. */
  reset(): void {
    this.close();
    this.#openings = 0;
  }
}
