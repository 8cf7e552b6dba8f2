import type { DomainError } from "../domain/errors.ts";
import { SlotArray } from "../domain/slot-array.ts";

/** A call that can be aborted; an AbortController is one. */
type Abortable = { abort(reason: DomainError): void };

/**
 * The calls that a signal aborts. They share one listener: the time to remove one listener per call grows
 * with the square of their number.
 */
export class RunningCalls {
  readonly #calls = new SlotArray<Abortable>();
  readonly #signal: AbortSignal;

  constructor(signal: AbortSignal) {
    this.#signal = signal;
    signal.addEventListener("abort", () => {
      for (const call of this.#calls) call.abort(signal.reason);
    });
  }

  /** Returns the slot to pass to remove() when the call ends. */
  insert(call: Abortable): number {
    const slot = this.#calls.insert(call);
    if (this.#signal.aborted) call.abort(this.#signal.reason);
    return slot;
  }

  remove(slot: number): void {
    this.#calls.remove(slot);
  }
}
