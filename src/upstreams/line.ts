import { Breaker, type BreakerOptions } from "./breaker.ts";
import type { UpstreamFailure } from "./failure.ts";
import { type SlotOptions, Slots } from "./slots.ts";
import type { Upstream } from "./upstream.ts";

/** How a try at an upstream ended; "busy" and "down" did not get as far as asking it. */
export type Outcome = "ok" | "cancelled" | "busy" | "down" | UpstreamFailure["kind"];

/** Told of every try. */
export type OnTry = (upstream: string, outcome: Outcome, failure: UpstreamFailure | undefined) => void;

/** An upstream with what keeps it from being asked too much, or in vain. */
export class Line {
  readonly upstream: Upstream;
  readonly breaker: Breaker;
  readonly slots: Slots;
  readonly onTry: OnTry;
  /** Part of the catalog as it is now; a call may still hold one that is not. */
  kept = false;
  /** Calls that may still turn to it. */
  users = 0;

  constructor(
    upstream: Upstream,
    options: { readonly breaker: BreakerOptions; readonly slots: SlotOptions },
    tools: { readonly now: () => number; readonly random: () => number; readonly onTry: OnTry },
  ) {
    this.upstream = upstream;
    this.breaker = new Breaker(options.breaker, tools.now, tools.random);
    this.slots = new Slots(options.slots);
    this.onTry = tools.onTry;
  }

  /** Gets a slot and the leave to ask, or says which of them cannot be had. How many tries of this call came before. */
  async start(signal: AbortSignal, triesBefore: number): Promise<Try | "busy" | "down"> {
    const entered = this.slots.acquire(signal);
    if (!(entered === true || (await entered))) return this.#refuse("busy");
    const pass = this.breaker.enter();
    if (pass !== "shut") return new Try(this, pass === "probe", triesBefore > 0);
    this.slots.release();
    return this.#refuse("down");
  }

  #refuse(outcome: "busy" | "down"): "busy" | "down" {
    this.onTry(this.upstream.name, outcome, undefined);
    return outcome;
  }
}

/** One call that asks one upstream once. Whatever happens, it ends once and gives its slot back. */
export class Try {
  readonly #line: Line;
  readonly #isProbe: boolean;
  readonly #isRetry: boolean;
  #forgiven = 0;
  #ended = false;

  constructor(line: Line, isProbe: boolean, isRetry: boolean) {
    this.#line = line;
    this.#isProbe = isProbe;
    this.#isRetry = isRetry;
  }

  /** There is something of the reply. */
  begin(): void {
    this.#forgiven = this.#line.breaker.begin();
  }

  succeed(): void {
    if (this.#end("ok")) this.#line.breaker.succeed();
  }

  fail(failure: UpstreamFailure): void {
    if (!this.#end(failure.kind, failure)) return;
    if (!failure.isSick) this.#line.breaker.succeed();
    // Perhaps it is the prompt: a call that fails again and again says no more than one that failed.
    else if (this.#isRetry && !this.#isProbe) this.#line.breaker.takeBack(this.#forgiven);
    else this.#line.breaker.fail(this.#isProbe, this.#forgiven);
  }

  /** Nothing, if it has ended; otherwise the caller has gone. */
  close(): void {
    if (this.#end("cancelled")) this.#line.breaker.leave(this.#isProbe);
  }

  #end(outcome: Outcome, failure?: UpstreamFailure): boolean {
    if (this.#ended) return false;
    this.#ended = true;
    this.#line.slots.release();
    this.#line.onTry(this.#line.upstream.name, outcome, failure);
    return true;
  }
}
