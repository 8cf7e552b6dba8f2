import { setImmediate as immediate } from "node:timers/promises";
import type { Message } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import type { ApiCall, Member } from "../api/define-service.ts";
import { actionOf } from "../api/operator-action.ts";
import type { Caller, GenerationStart } from "../billing/generation-request.ts";
import { CallerDisconnected } from "../codec/body.ts";
import type { BodyBudget, BodyShare } from "../codec/body-budget.ts";
import { measured } from "../domain/call-trace.ts";
import { containsKey } from "../domain/credentials.ts";
import { DomainError } from "../domain/errors.ts";
import { currency } from "../domain/money.ts";
import { inTurnsOf } from "../domain/next-turn.ts";
import type { Operator } from "../domain/operator.ts";
import { SlotArray } from "../domain/slot-array.ts";
import { digestOfRequest } from "../rules/request-digest.ts";
import { validateRequest } from "../rules/validate.ts";
import type { Action, Actor } from "../store/action.ts";
import type { AdmittedKey } from "../store/admit.ts";
import type { Exchange, IncomingCall } from "./call.ts";
import { fromRequestError } from "./errors/connect-error.ts";
import { type Admitted, checkAnnouncedSize, type Gate, setLimitHeaders, setRateHeaders } from "./gate/gate.ts";
import type { Observation, Observe } from "./observation.ts";

type CallServerOptions = {
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

  /** 401, 403 and 429, and the end of a call whose deadline passes first, before the body is read. */
  async #passGate(exchange: Exchange, observation: Observation): Promise<Admitted> {
    const span = observation.trace?.startStage("gate");
    const admission = beforeDeadline(this.#gate(exchange, span), exchange.remainingMs());
    const admitted = await measured(span, admission);
    observation.setAdmitted(admitted);
    if (admitted.window) setRateHeaders(exchange, admitted.window);
    // Commands of operators write amounts in the currency of the server.
    if (admitted.operator) exchange.setHeader("x-vx-currency", currency().code);
    return admitted;
  }

  async #serveAdmitted(exchange: Exchange, admitted: Admitted, observation: Observation): Promise<void> {
    const share = this.#budget.openShare(admitted.key?.accountId);
    const call = new ServiceCall(exchange, admitted, observation, share);
    try {
      checkAnnouncedSize(exchange);
      const reading = exchange.read(share);
      const message = reading instanceof Promise ? await this.#readLate(exchange, reading, admitted) : reading;
      const { method } = exchange;
      observation.setRpc(method.rpc);
      method.check?.(message, call);
      validateRequest(method.input, message);
      const result = method.invoke(message, call);
      if (method.isStream) await exchange.respondWithStream(result as AsyncIterable<unknown>);
      else {
        const sending = exchange.respond(await result);
        if (sending !== undefined) await sending;
      }
    } finally {
      share.release();
    }
  }

  /**
   * The message of a call whose body did not arrive with its head. The caller may have lost the right to the call since then: changes and
   * holds prove it again in the database, other methods ask the gate again.
   */
  async #readLate(exchange: Exchange, reading: Promise<Message>, { recheck }: Admitted): Promise<Message> {
    const isChecked = exchange.policy.metered || exchange.request.complete;
    const isLate = !isChecked && (await Promise.race([reading.then(no, no), immediate(true)]));
    const message = await reading;
    if (isLate) await recheck();
    return message;
  }
}

const no = () => false;

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

/** A call in the form that services get. */
export class ServiceCall implements ApiCall {
  readonly exchange: Exchange;
  readonly #admitted: Admitted;
  readonly #observation: Observation;
  readonly #share: BodyShare;

  readonly #action: Action | undefined;

  constructor(exchange: Exchange, admitted: Admitted, observation: Observation, share: BodyShare, action?: Action) {
    this.exchange = exchange;
    this.#action = action;
    this.#admitted = admitted;
    this.#observation = observation;
    this.#share = share;
  }

  get key(): AdmittedKey {
    const { key } = this.#admitted;
    if (!key) throw new Error(`${this.exchange.method.rpc} was called without a key`);
    return key;
  }

  get operator(): Operator {
    const { operator } = this.#admitted;
    if (!operator) throw new Error(`${this.exchange.method.rpc} was called without an operator`);
    return operator;
  }

  withAction(action: Action): ServiceCall {
    return new ServiceCall(this.exchange, this.#admitted, this.#observation, this.#share, action);
  }

  get member(): Member {
    const { member } = this.#admitted;
    if (!member) throw new Error(`${this.exchange.method.rpc} was called without a session`);
    return member;
  }

  get actor(): Actor {
    return this.#admitted.actor;
  }

  get action(): Action {
    return this.#action ?? actionOf(this.actor, this.method, this.requestId, {});
  }

  async recheck(): Promise<void> {
    await this.#admitted.recheck();
  }

  get method(): string {
    return this.exchange.method.name;
  }

  get requestId(): string {
    return this.exchange.requestId;
  }

  get idempotencyKey(): string | undefined {
    return idempotencyKeyOf(this.exchange);
  }

  nameAccount(id: string): void {
    this.exchange.setHeader("x-vx-account", id);
  }

  recordChange(target: string, amountMicros: bigint | undefined): void {
    this.#observation.setChange({ target, amountMicros });
  }

  reportIgnored(names: string): void {
    this.exchange.setHeader("x-vx-ignored", names);
  }

  startStream(): void {
    this.exchange.startStream();
  }

  get signal(): AbortSignal {
    return this.exchange.signal;
  }

  abort(error: DomainError): void {
    this.exchange.abort(error);
  }

  reserveMemory(bytes: number): void {
    this.#share.reserve(bytes);
  }

  caller(request: Message): Caller {
    if (!this.exchange.policy.metered) throw new Error(`${this.exchange.method.rpc} is not declared as metered`);
    const { exchange, idempotencyKey } = this;
    const { rpc, input, selectedBy } = exchange.method;
    const observation = this.#observation;
    return {
      requestId: exchange.requestId,
      trace: observation.trace,
      key: this.key,
      readmit: () => this.#readmit(),
      idempotency:
        idempotencyKey === undefined
          ? undefined
          : { key: idempotencyKey, digest: () => digestOfRequest(rpc, input, request, selectedBy) },
      signal: exchange.signal,
      endReason: () => endReasonOf(exchange),
      onModel: (modelId) => observation.setModel(modelId),
      onStart: (start) => this.#start(start),
    };
  }

  async #readmit(): Promise<AdmittedKey> {
    const { readmit } = this.#admitted;
    if (!readmit) throw new Error(`${this.exchange.method.rpc} was called without a key`);
    return await readmit();
  }

  #start({ generation, loweredMaxTokens, minuteLimits }: GenerationStart): void {
    const { exchange } = this;
    if (generation) {
      this.#observation.setGeneration(generation);
      // A generation can outlive its call and keeps the prompt in memory.
      this.#share.retain();
      generation.onSettled(() => this.#share.release());
    } else exchange.setHeader("idempotency-replayed", "true");
    if (loweredMaxTokens !== undefined) exchange.setHeader("x-vx-max-tokens", String(loweredMaxTokens));
    if (minuteLimits.length > 0) setLimitHeaders(exchange, this.#admitted.window, minuteLimits);
  }
}

/** A disconnect in the last second before the deadline counts as the deadline: the caller's clock started earlier. */
const DEADLINE_SLACK_MS = 1_000;

/**
 * Why the signal of a call was aborted: the deadline passed, the server stops, or the caller disconnected.
 */
function endReasonOf(exchange: Exchange): ReturnType<Caller["endReason"]> {
  const { reason } = exchange.signal;
  if (reason instanceof DomainError) return "unavailable";
  if (reason instanceof ConnectError && reason.code === Code.DeadlineExceeded) return "deadline_exceeded";
  const remainingMs = exchange.remainingMs() ?? Number.POSITIVE_INFINITY;
  return remainingMs < DEADLINE_SLACK_MS ? "deadline_exceeded" : "disconnected";
}

const MAX_LENGTH = 255;

/** The key that makes a call safe to repeat, quoted or bare; undefined if the caller sent none. */
function idempotencyKeyOf(call: Pick<IncomingCall, "headers">): string | undefined {
  const given = call.headers("idempotency-key");
  const other = call.headers("request_id");
  if (given.length + other.length === 0) return undefined;
  const values = [...given, ...other];
  const keys = new Set(values.map(unquoted));
  const [key] = keys;
  if (keys.size > 1 || key === undefined) throw invalid("must be sent once");
  if (key === "" || key.length > MAX_LENGTH) throw invalid(`must have 1 to ${MAX_LENGTH} characters`);
  if (!/^[\x20-\x7e]+$/.test(key)) throw invalid("must be printable ASCII");
  // The key is stored.
  if (containsKey(key)) throw invalid("must not contain an API key");
  return key;
}

/** Unquotes a structured-field string, "…" with \" and \\ in it; any other value is used unchanged. */
function unquoted(value: string): string {
  const text = value.trim();
  const inner = /^"((?:[^"\\]|\\["\\])*)"$/.exec(text)?.[1];
  return inner === undefined ? text : inner.replace(/\\(["\\])/g, "$1");
}

function invalid(description: string): DomainError {
  return DomainError.ofField("idempotency-key", description);
}
