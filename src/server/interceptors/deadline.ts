import { DomainError } from "../../domain/errors.ts";
import { SlotArray } from "../../domain/slot-array.ts";
import type { Admitted, Call } from "../call.ts";
import type { AdmittedCall, Interceptor, Serve } from "./interceptor.ts";

/**
 * Ends a call whose deadline passes before it is admitted, and aborts the calls that run when the server stops. Later, the signal of the
 * call has the deadline.
 */
export function deadline(shutdownSignal: AbortSignal): Interceptor {
  const running = new RunningCalls(shutdownSignal);
  return (next) => async (call) => {
    const slot = running.insert(call);
    const remainingMs = call.remainingMs();
    try {
      if (remainingMs === undefined) await next(call);
      else await beforeDeadline(call, remainingMs, next);
    } finally {
      call.stopDeadline();
      running.remove(slot);
    }
  };
}

async function beforeDeadline(call: Call, remainingMs: number, next: Serve): Promise<void> {
  const passed = Promise.withResolvers<never>();
  const onDeadline = () => {
    if (call.admitted) return;
    call.isLate = true;
    passed.reject(deadlineExceeded());
  };
  if (remainingMs <= 0) onDeadline();
  const timer = setTimeout(onDeadline, Math.max(0, remainingMs));
  try {
    await Promise.race([next(call), passed.promise]);
  } finally {
    clearTimeout(timer);
  }
}

/** Adds who makes a call, unless its deadline has passed meanwhile and the error was sent. */
export function admit(call: Call, admitted: Admitted): AdmittedCall {
  if (call.isLate) throw deadlineExceeded();
  return Object.assign(call, { admitted });
}

function deadlineExceeded(): DomainError {
  return new DomainError("deadline_exceeded", { message: "The deadline of the call passed before it started." });
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
