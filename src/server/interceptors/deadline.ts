import { DomainError } from "../../domain/errors.ts";
import { SlotArray } from "../../domain/slot-array.ts";
import type { Call } from "../call.ts";
import type { Interceptor } from "./interceptor.ts";

/**
 * Refuses a call whose deadline passes before it is admitted, and aborts the calls that run when the server stops. Later, the signal of
 * the call has the deadline.
 */
export function deadline(shutdownSignal: AbortSignal): Interceptor {
  const running = new RunningCalls(shutdownSignal);
  return (next) => async (call) => {
    const slot = running.insert(call);
    const timer = startTimer(call);
    try {
      await next(call);
    } finally {
      clearTimeout(timer);
      call.stopDeadline();
      running.remove(slot);
    }
  };
}

function startTimer(call: Call): NodeJS.Timeout | undefined {
  const remainingMs = call.remainingMs();
  if (remainingMs === undefined) return undefined;
  const { promise, reject } = Promise.withResolvers<never>();
  // Nobody waits for it once the call is admitted.
  promise.catch(() => undefined);
  call.deadlinePassed = promise;
  const onDeadline = () =>
    reject(new DomainError("deadline_exceeded", { message: "The deadline of the call passed before it started." }));
  if (remainingMs > 0) return setTimeout(onDeadline, remainingMs);
  onDeadline();
  return undefined;
}

/** Settles like the admission, unless the deadline of the call passes before. */
export function beforeDeadline<Result>({ deadlinePassed }: Call, admission: Promise<Result>): Promise<Result> {
  return deadlinePassed !== undefined ? Promise.race([admission, deadlinePassed]) : admission;
}

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
