import { Code, ConnectError } from "@connectrpc/connect";
import { CallerDisconnected } from "../codec/body.ts";
import type { BodyBudget } from "../codec/body-budget.ts";
import { measured } from "../domain/call-trace.ts";
import { DomainError } from "../domain/errors.ts";
import { inTurnsOf } from "../domain/next-turn.ts";
import { SlotArray } from "../domain/slot-array.ts";
import { validateRequest } from "../rules/validate.ts";
import type { Exchange } from "./call.ts";
import { fromRequestError } from "./errors/connect-error.ts";
import { type Admitted, checkAnnouncedSize, type Gate, setRateHeaders } from "./gate/gate.ts";
import type { Observation, Observe } from "./observation.ts";
import { ServiceCall } from "./service-call.ts";

export type CallServerOptions = {
  readonly gate: Gate;
  /** The memory for the requests of all calls. */
  readonly budget: BodyBudget;
  /** Aborts the calls that are still running at the end of a drain. */
  readonly shutdownSignal: AbortSignal;
  readonly observe: Observe;
};

/** Serves the calls of a listener, in every protocol: gate → read → validate → invoke → respond. */
export class CallServer {
  readonly #gate: Gate;
  readonly #budget: BodyBudget;
  readonly #observe: Observe;
  readonly #running: RunningCalls;

  constructor({ gate, budget, shutdownSignal, observe }: CallServerOptions) {
    this.#gate = gate;
    this.#budget = budget;
    this.#observe = observe;
    this.#running = new RunningCalls(shutdownSignal);
  }

  async serve(exchange: Exchange): Promise<void> {
    const observation = this.#observe(exchange, exchange.method.rpc, exchange.route);
    const slot = this.#running.insert(exchange);
    let code: Code | 0 = 0;
    try {
      const admitted = await this.#passGate(exchange, observation);
      await inTurnsOf(admitted.key?.accountId, () => this.#serveAdmitted(exchange, admitted, observation));
      if (!exchange.headersSent) throw new CallerDisconnected();
    } catch (error) {
      code = await sendFailure(error, exchange, observation);
    } finally {
      exchange.stopDeadline();
      this.#running.remove(slot);
      if (exchange.abortError) observation.setFailure(exchange.abortError);
      observation.end(code);
    }
  }

  /** 401, 403, 429 and 413, and the end of a call whose deadline passes first, before the body is read. */
  async #passGate(exchange: Exchange, observation: Observation): Promise<Admitted> {
    const span = observation.trace?.startStage("gate");
    const admission = beforeDeadline(this.#gate(exchange, span), exchange.remainingMs());
    const admitted = await measured(span, admission);
    observation.setAdmitted(admitted);
    if (admitted.window) setRateHeaders(exchange, admitted.window);
    checkAnnouncedSize(exchange);
    return admitted;
  }

  async #serveAdmitted(exchange: Exchange, admitted: Admitted, observation: Observation): Promise<void> {
    const share = this.#budget.openShare(admitted.key?.accountId);
    try {
      const reading = exchange.read(share);
      const message = reading instanceof Promise ? await reading : reading;
      const { method } = exchange;
      observation.setRpc(method.rpc);
      validateRequest(method.input, message);
      const result = method.invoke(message, new ServiceCall(exchange, admitted, observation, share));
      if (method.isStream) await exchange.respondWithStream(result as AsyncIterable<unknown>);
      else {
        const sending = exchange.respond(await result);
        if (sending !== undefined) await sending;
      }
    } finally {
      share.release();
    }
  }
}

/** Sends an error, once; returns the code for the log if the failure itself does not have it. */
async function sendFailure(error: unknown, exchange: Exchange, observation: Observation): Promise<Code | 0> {
  if (exchange.abortError) return 0;
  if (error instanceof CallerDisconnected) return Code.Canceled;
  const known = error instanceof ConnectError ? error : fromRequestError(error);
  observation.setFailure(known);
  await exchange.sendError(known);
  return 0;
}

/** Settles like the work, or rejects when the deadline of the call passes before. */
export function beforeDeadline<T>(work: Promise<T>, remainingMs: number | undefined): Promise<T> {
  if (remainingMs === undefined) return work;
  const passed = Promise.withResolvers<never>();
  const onDeadline = () => passed.reject(deadlineExceeded());
  const timer = remainingMs > 0 ? setTimeout(onDeadline, remainingMs) : undefined;
  if (!timer) onDeadline();
  return Promise.race([work, passed.promise]).finally(() => clearTimeout(timer));
}

function deadlineExceeded(): DomainError {
  return new DomainError("deadline_exceeded", {
    message: "The deadline of the call passed before it started.",
  });
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
