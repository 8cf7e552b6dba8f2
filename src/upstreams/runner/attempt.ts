import type { UpstreamCall } from "../upstream-call.ts";
import type { Breaker, Pass } from "./breaker.ts";
import type { UpstreamFailure } from "./failure.ts";

/** How an attempt ended. With "busy" and "down" no request was sent to the upstream. */
export type Outcome = "ok" | "cancelled" | "busy" | "down" | UpstreamFailure["kind"];

export type AttemptReport = {
  readonly call: UpstreamCall;
  readonly upstream: string;
  /** Counts from 1 for each upstream of a call. */
  readonly number: number;
  readonly outcome: Outcome;
  readonly failure: UpstreamFailure | undefined;
};

/** Called at the end of every attempt. */
export type OnReport = (report: AttemptReport) => void;

type OnEnd = (outcome: Outcome, failure?: UpstreamFailure) => void;

/** One request of one call to one upstream. Only the first of succeed, fail and close has an effect. */
export class Attempt {
  readonly #pass: Pass;
  readonly #breaker: Breaker;
  #onEnd: OnEnd | undefined;

  constructor(pass: Pass, breaker: Breaker, onEnd: OnEnd) {
    this.#pass = pass;
    this.#breaker = breaker;
    this.#onEnd = onEnd;
  }

  /** Called when the reply has begun. */
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

  /** Called when the caller disconnects. Does nothing if the attempt has ended. */
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
