import type { DomainError } from "../domain/errors.ts";
import { Places } from "../domain/places.ts";

/** A call that can be ended before its time: an AbortController is one. */
type Abortable = { abort(reason: DomainError): void };

/**
 * The calls that end when a signal says so. One listener for all of them: a signal with a listener for each call takes
 * a time that grows with their square to let go of them.
 */
export class RunningCalls {
  readonly #calls = new Places<Abortable>();
  readonly #signal: AbortSignal;

  constructor(signal: AbortSignal) {
    this.#signal = signal;
    signal.addEventListener("abort", () => {
      for (const call of this.#calls) call.abort(signal.reason);
    });
  }

  /** Returns its place, which it leaves when it ends. */
  enter(call: Abortable): number {
    const place = this.#calls.add(call);
    if (this.#signal.aborted) call.abort(this.#signal.reason);
    return place;
  }

  leave(place: number): void {
    this.#calls.remove(place);
  }
}
