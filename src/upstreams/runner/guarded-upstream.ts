import type { Upstream } from "../upstream.ts";
import type { UpstreamCall } from "../upstream-call.ts";
import type { UpstreamFailure } from "../upstream-failure.ts";
import { Attempt, type OnReport, type Outcome } from "./attempt.ts";
import { Breaker, type BreakerOptions } from "./breaker.ts";
import type { CircuitTools } from "./circuit.ts";
import { type SlotOptions, Slots } from "./slots.ts";

/** An upstream with its slots and its breaker. */
export class GuardedUpstream {
  readonly upstream: Upstream;
  readonly breaker: Breaker;
  readonly slots: Slots;
  readonly #onReport: OnReport;
  /** Number of running calls that may use it. */
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
   * Starts a request with a slot and a pass of the breaker. Returns "busy" without a slot and "down" if the
   * breaker refuses.
   */
  async start(call: UpstreamCall, number: number, signal: AbortSignal): Promise<Attempt | "busy" | "down"> {
    const { upstream, breaker, slots } = this;
    const { accountId, prompt, progress } = call;
    const report = (outcome: Outcome, failure?: UpstreamFailure) =>
      this.#onReport({ call, upstream: upstream.name, number, outcome, failure });
    const acquired = slots.acquire(accountId, signal);
    if (!(acquired === true || (await acquired))) {
      report("busy");
      return "busy";
    }
    const onEnd = (outcome: Outcome, failure?: UpstreamFailure) => {
      slots.release(accountId);
      report(outcome, failure);
    };
    const pass = breaker.admit(accountId, number > 1);
    if (!pass) {
      onEnd("down");
      return "down";
    }
    progress.upstream = upstream.name;
    const events = upstream.generate(prompt, signal, progress)[Symbol.asyncIterator]();
    return new Attempt({ events, signal, pass, breaker, onEnd });
  }
}
