import { Code, ConnectError } from "@connectrpc/connect";
import type { StartedGeneration } from "../billing/caller.ts";
import { DomainError, ERRORS } from "../domain/errors.ts";
import { inputTokensOf, outputTokensOf } from "../domain/usage.ts";
import type { Log } from "../telemetry/log.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import { asDomainError } from "./errors/connect-error.ts";
import type { Admitted } from "./gate/gate.ts";
import type { IncomingCall } from "./incoming-call.ts";

/** A finished call, as the log and the metrics show it. */
export type CallRecord = {
  readonly call: IncomingCall;
  /** "vx.v1.MeService/GetMe", or "none" for an address without a route. */
  readonly rpc: string;
  /** Undefined if the gate did not admit the call. */
  readonly admitted: Admitted | undefined;
  /** The model and the generation of a metered call. */
  readonly model: string | undefined;
  readonly generation: StartedGeneration | undefined;
  /** Why the call failed; undefined if it succeeded, or if only its code is known. */
  readonly failure: unknown;
  readonly code: Code | 0;
  readonly seconds: number;
};

/** Starts the observation of a call. */
export type Observe = (call: IncomingCall, rpc: string) => Observation;

/** Collects the record of one call while it runs. No stage of the call reads it, except whether it failed. */
export class Observation {
  readonly #call: IncomingCall;
  readonly #report: (record: CallRecord) => void;
  readonly #startedAt = performance.now();
  #rpc: string;
  #admitted: Admitted | undefined;
  #model: string | undefined;
  #generation: StartedGeneration | undefined;
  #failure: unknown;

  constructor(call: IncomingCall, rpc: string, report: (record: CallRecord) => void) {
    this.#call = call;
    this.#rpc = rpc;
    this.#report = report;
  }

  get startedAt(): number {
    return this.#startedAt;
  }

  get hasFailed(): boolean {
    return this.#failure !== undefined;
  }

  setRpc(rpc: string): void {
    this.#rpc = rpc;
  }

  setAdmitted(admitted: Admitted): void {
    this.#admitted = admitted;
  }

  setModel(model: string): void {
    this.#model = model;
  }

  setGeneration(generation: StartedGeneration): void {
    this.#generation = generation;
  }

  setFailure(failure: unknown): void {
    this.#failure = failure;
  }

  /** Call this once, with the code that was sent; a failure determines the code if there is one. */
  end(code: Code | 0): void {
    this.#report({
      call: this.#call,
      rpc: this.#rpc,
      admitted: this.#admitted,
      model: this.#model,
      generation: this.#generation,
      failure: this.#failure,
      code,
      seconds: (performance.now() - this.#startedAt) / 1000,
    });
  }
}

/**
 * Counts and logs each finished call: its key, what it used, how it ended, how long it took. The log line of
 * a metered call waits for its settlement, which may come after the caller disconnects.
 */
export function createObserver(log: Log, metrics: Metrics): Observe {
  const report = (record: CallRecord) => {
    const { call, rpc, generation, failure, seconds } = record;
    const { protocol } = call;
    const code = codeName(record);
    metrics.calls.inc({ rpc, protocol, code });
    metrics.latency.observe({ rpc, protocol }, seconds);
    if (failure !== undefined && call.policy.access === "developer")
      metrics.failures.inc({ reason: reasonOf(failure) });
    if (!generation) writeLine(log, record, code);
    else
      generation.onSettled(() => {
        metrics.charges.inc(Number(generation.charge?.amountMicros ?? 0n));
        writeLine(log, record, code);
      });
  };
  return (call, rpc) => new Observation(call, rpc, report);
}

function writeLine(log: Log, record: CallRecord, code: string): void {
  const { call, admitted, failure, generation } = record;
  const charge = generation?.charge;
  const line = {
    request_id: call.requestId,
    rpc: record.rpc,
    protocol: call.protocol,
    code,
    status: statusOf(failure, code),
    duration_ms: Math.round(record.seconds * 1e6) / 1e3,
    remote: call.remoteAddress,
    account_id: admitted?.key?.accountId,
    key_id: admitted?.key?.keyId,
    operator_id: admitted?.operator?.id,
    model: record.model,
    upstream: generation?.upstream,
    input_tokens: charge && inputTokensOf(charge.usage),
    output_tokens: charge && outputTokensOf(charge.usage),
    cost_micros: generation ? (charge?.amountMicros ?? 0n) : undefined,
    reason: failure === undefined ? undefined : reasonOf(failure),
  };
  // Only a bug has a stack trace.
  const isBug = (code === "internal" || code === "unknown") && !isMistakeOfCaller(failure);
  if (isBug) log.error({ ...line, err: causeOf(failure) }, "call failed");
  else if (code === "unavailable") log.warn({ ...line, detail: detailOf(failure) }, "call refused");
  else log.info(line, "call");
}

/** gRPC requires the code INTERNAL for some mistakes of callers. */
function isMistakeOfCaller(failure: unknown): boolean {
  return failure instanceof DomainError && ERRORS[failure.reason].status < 500;
}

/** The HTTP status of the failure over REST, whatever the protocol of the call; undefined if it has none. */
function statusOf(failure: unknown, code: string): number | undefined {
  if (failure === undefined) return code === "ok" ? 200 : undefined;
  return failure instanceof ConnectError ? undefined : ERRORS[asDomainError(failure).reason].status;
}

function codeName({ failure, code }: CallRecord): string {
  if (failure === undefined) return code === 0 ? "ok" : snakeCase(Code[code] ?? "Unknown");
  if (failure instanceof ConnectError) return snakeCase(Code[failure.code]);
  return ERRORS[asDomainError(failure).reason].code.toLowerCase();
}

function reasonOf(failure: unknown): string {
  if (failure instanceof DomainError) return failure.reason;
  return failure instanceof ConnectError ? snakeCase(Code[failure.code]) : "internal";
}

function causeOf(failure: unknown): unknown {
  return failure instanceof DomainError ? (failure.cause ?? failure) : failure;
}

function detailOf(failure: unknown): string | undefined {
  const cause = causeOf(failure) as NodeJS.ErrnoException | undefined;
  // Node's error for several addresses that all refuse a connection has a code and no message.
  return cause?.message || cause?.code;
}

function snakeCase(name: string): string {
  return name.replace(/(?<!^)([A-Z])/g, "_$1").toLowerCase();
}
