export type CircuitState = "closed" | "half_open" | "open";

export type CircuitOptions = {
  /** How long it stays open at first. Each failed probe doubles that, up to the maximum. */
  readonly openMs: number;
  /** Also how long a probe without a result prevents another one. */
  readonly maxOpenMs: number;
};

export type CircuitTools = {
  /** Milliseconds that never go back. */
  readonly now: () => number;
  /** From 0 to below 1. */
  readonly random: () => number;
};

/** Whether calls may pass. Once open it lets single calls probe, after a wait that grows. */
export class Circuit {
  readonly #options: CircuitOptions;
  readonly #tools: CircuitTools;
  /** How often it has opened since the last reset. */
  #openings = 0;
  /** Undefined while closed. */
  #openUntilMs: number | undefined;
  /** Undefined without a probe. */
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

  /** True for the call that may probe now. A slow call must not keep all others away, so its turn to probe expires. */
  tryProbe(): boolean {
    const now = this.#tools.now();
    if (this.#openUntilMs === undefined || now < this.#openUntilMs) return false;
    if (this.#probingUntilMs !== undefined && now < this.#probingUntilMs) return false;
    this.#probingUntilMs = now + this.#options.maxOpenMs;
    return true;
  }

  /** The probe ended without a result: another call may probe. */
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

  /** The reply of a probe has begun. Should it break off, the next wait is longer still. */
  close(): void {
    this.#openUntilMs = undefined;
    this.#probingUntilMs = undefined;
  }

  /** A whole reply: the next wait is short again. */
  reset(): void {
    this.close();
    this.#openings = 0;
  }
}
