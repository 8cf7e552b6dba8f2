import type { UpstreamEvent } from "../upstream.ts";
import type { UpstreamCall } from "../upstream-call.ts";
import { UpstreamFailure } from "../upstream-failure.ts";
import type { Breaker, Pass } from "./breaker.ts";

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

type AttemptOptions = {
  readonly events: AsyncIterator<UpstreamEvent>;
  readonly signal: AbortSignal;
  readonly pass: Pass;
  readonly breaker: Breaker;
  readonly onEnd: (outcome: Outcome, failure?: UpstreamFailure) => void;
};

/** One request of one call to one upstream. The breaker is notified of each change of its state. */
export class Attempt {
  readonly #options: AttemptOptions;
  #state: "requested" | "replying" | "ended" = "requested";

  constructor(options: AttemptOptions) {
    this.#options = options;
  }

  /**
   * The next event of the reply. Throws the signal's reason after an abort, and an UpstreamFailure if the
   * upstream failed. The attempt ends with its last event or its failure.
   */
  async next(): Promise<UpstreamEvent> {
    try {
      const event = eventOf(await this.#options.events.next());
      if (this.#state === "requested") this.#begin();
      if (event.kind === "done") this.#succeed();
      return event;
    } catch (error) {
      const { signal } = this.#options;
      if (!signal.aborted && error instanceof UpstreamFailure) this.#fail(error);
      else this.#cancel();
      throw signal.aborted ? signal.reason : error;
    }
  }

  /** Called when the caller reads no further. */
  async close(): Promise<void> {
    this.#cancel();
    await this.#options.events.return?.();
  }

  #begin(): void {
    this.#state = "replying";
    this.#options.breaker.begin(this.#options.pass);
  }

  #succeed(): void {
    if (this.#end("ok")) this.#options.breaker.succeed(this.#options.pass);
  }

  #fail(failure: UpstreamFailure): void {
    const { breaker, pass } = this.#options;
    if (!this.#end(failure.kind, failure)) return;
    if (failure.isUnhealthy) breaker.fail(pass, failure);
    else breaker.succeed(pass);
  }

  #cancel(): void {
    if (this.#end("cancelled")) this.#options.breaker.cancel(this.#options.pass);
  }

  /** False if the attempt has ended already. */
  #end(outcome: Outcome, failure?: UpstreamFailure): boolean {
    if (this.#state === "ended") return false;
    this.#state = "ended";
    this.#options.onEnd(outcome, failure);
    return true;
  }
}

function eventOf({ done, value }: IteratorResult<UpstreamEvent>): UpstreamEvent {
  if (done) throw new UpstreamFailure("dropped", "the reply has no end");
  return value;
}
