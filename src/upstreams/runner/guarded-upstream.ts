import type { AttemptResult } from "../../domain/call-trace.ts";
import type { UpstreamSettings } from "../../domain/model.ts";
import type { Upstream } from "../upstream.ts";
import type { UpstreamCall } from "../upstream-call.ts";
import type { UpstreamFailure } from "../upstream-failure.ts";
import { Attempt, type OnReport, type Outcome } from "./attempt.ts";
import { Breaker, type BreakerOptions } from "./breaker.ts";
import type { CircuitTools } from "./circuit.ts";
import { type SlotOptions, Slots } from "./slots.ts";

type GuardTools = CircuitTools & { readonly onReport: OnReport };

/** An upstream with its slots and its breaker. */
export class GuardedUpstream {
  readonly upstream: Upstream;
  readonly breaker: Breaker;
  readonly slots: Slots;
  readonly #settings: UpstreamSettings;
  readonly #tools: GuardTools;
  /** Number of running calls that may use it. */
  users = 0;

  constructor(
    settings: UpstreamSettings,
    upstream: Upstream,
    options: { readonly breaker: BreakerOptions; readonly slots: SlotOptions },
    tools: GuardTools,
  ) {
    this.#settings = settings;
    this.upstream = upstream;
    this.breaker = new Breaker(options.breaker, tools);
    this.slots = new Slots(options.slots);
    this.#tools = tools;
  }

  /**
   * Starts a request with a slot and a pass of the breaker. Returns "busy" without a slot and "down" if the
   * breaker refuses.
   */
  async start(call: UpstreamCall, number: number, signal: AbortSignal): Promise<Attempt | "busy" | "down"> {
    const { upstream, breaker, slots } = this;
    const { accountId, prompt, progress } = call;
    const { now, onReport } = this.#tools;
    const settings = this.#settings;
    const report = (outcome: Outcome, failure?: UpstreamFailure, result?: AttemptResult) =>
      onReport({ call, upstream: upstream.name, settings, number, outcome, failure, result });
    const acquired = slots.acquire(accountId, signal);
    if (!(acquired === true || (await acquired))) {
      report("busy");
      return "busy";
    }
    const pass = breaker.admit(accountId, number > 1);
    if (!pass) {
      slots.release(accountId);
      report("down");
      return "down";
    }
    progress.upstream = upstream.name;
    const span = call.trace?.startAttempt({ model: call.model, settings, prompt, number });
    const events = upstream.generate(prompt, signal, progress, span?.headers)[Symbol.asyncIterator]();
    return new Attempt({
      events,
      signal,
      pass,
      breaker,
      now,
      onEnd: (result, failure) => {
        slots.release(accountId);
        span?.end(result);
        report(result.outcome, failure, result);
      },
    });
  }
}
