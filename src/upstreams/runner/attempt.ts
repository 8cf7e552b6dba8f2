import type { UpstreamCall } from "../upstream-call.ts";
import type { Breaker, Pass } from "./breaker.ts";
import type { UpstreamFailure } from "./failure.ts";

/** How an attempt ended; "busy" and "down" did not get as far as asking the upstream. */
export type Outcome = "ok" | "cancelled" | "busy" | "down" | UpstreamFailure["kind"];

export type AttemptReport = {
  readonly call: UpstreamCall;
  readonly upstream: string;
  /** From 1, counted for each upstream of a call. */
  readonly number: number;
  readonly outcome: Outcome;
  readonly failure: UpstreamFailure | undefined;
};

/** Called at the end of every attempt. */
export type OnReport = (report: AttemptReport) => void;

type OnEnd = (outcome: Outcome, failure?: UpstreamFailure) => void;

/** One call that asks one upstream once. It ends once. */
export class Attempt {
  readonly #pass: Pass;
  readonly #breaker: Breaker;
  #onEnd: OnEnd | undefined;

  constructor(pass: Pass, breaker: Breaker, onEnd: OnEnd) {
    this.#pass = pass;
    this.#breaker = breaker;
    this.#onEnd = onEnd;
  }

  /** The reply has begun. */
  begin(): void {
    this.#breaker.begin(this.#pass);
  }

  succeed(): void {
    if (this.#end("ok")) this.#breaker.succeed(this.#pass);
  }

  fail(failure: UpstreamFailure): void {
    if (!this.#end(failure.kind, failure)) return;
    if (failure.isSick) this.#breaker.fail(this.#pass, failure);
    else this.#breaker.succeed(this.#pass);
  }

  /** The caller left; nothing if the attempt has ended. */
  close(): void {
    if (this.#end("cancelled")) this.#breaker.leave(this.#pass);
  }

  #end(outcome: Outcome, failure?: UpstreamFailure): boolean {
    const onEnd = this.#onEnd;
    this.#onEnd = undefined;
    onEnd?.(outcome, failure);
    return onEnd !== undefined;
  }
}
