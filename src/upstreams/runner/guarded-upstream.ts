import type { Upstream } from "../upstream.ts";
import type { UpstreamCall } from "../upstream-call.ts";
import { Attempt, type OnReport, type Outcome } from "./attempt.ts";
import { Breaker, type BreakerOptions } from "./breaker.ts";
import type { CircuitTools } from "./circuit.ts";
import type { UpstreamFailure } from "./failure.ts";
import { type SlotOptions, Slots } from "./slots.ts";

/** An upstream with its slots and its breaker. */
export class GuardedUpstream {
  readonly upstream: Upstream;
  readonly breaker: Breaker;
  readonly slots: Slots;
  readonly #onReport: OnReport;
  /** Whether it is part of the current catalog. Running calls may still use one that is not. */
  kept = false;
  /** Number of calls that may still use it. */
  users = 0;

  constructor(
    upstream: Upstream,
    options: { readonly breaker: BreakerOptions; readonly slots: SlotOptions },
    tools: CircuitTools & { readonly onReport: OnReport },
  ) {
    this.upstream = upstream;
    this.breaker = new Breaker(options.breaker, tools);
    this.slots = new Slots(options.slots);
    this.#onReport = tools.onReport;
  }

  /**
   * Takes a slot and a pass of the breaker. Returns "busy" without a slot and "down" if the breaker refuses.
   */
  async start(call: UpstreamCall, number: number, signal: AbortSignal): Promise<Attempt | "busy" | "down"> {
    const report = (outcome: Outcome, failure?: UpstreamFailure) =>
      this.#onReport({ call, upstream: this.upstream.name, number, outcome, failure });
    const entered = this.slots.acquire(call.accountId, signal);
    if (!(entered === true || (await entered))) {
      report("busy");
      return "busy";
    }
    const end = (outcome: Outcome, failure?: UpstreamFailure) => {
      this.slots.release(call.accountId);
      report(outcome, failure);
    };
    const pass = this.breaker.enter(call.accountId, number > 1);
    if (pass) return new Attempt(pass, this.breaker, end);
    end("down");
    return "down";
  }
}
