import { Code, ConnectError } from "@connectrpc/connect";
import { codeToHttpStatus } from "@connectrpc/connect/protocol-connect";
import type { StartedGeneration } from "../billing/generation-request.ts";
import { type CallTrace, ForwardedTrace, type TraceParent } from "../domain/call-trace.ts";
import { redactKeys } from "../domain/credentials.ts";
import { DomainError, ERRORS } from "../domain/errors.ts";
import { inputTokensOf, outputTokensOf } from "../domain/usage.ts";
import type { FailedCall } from "../store/failures.ts";
import type { Log } from "../telemetry/log.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import type { HttpRoute, ServerTrace, StartTrace } from "../telemetry/telemetry.ts";
import type { IncomingCall } from "./call.ts";
import { ensureDomainError, toConnectError } from "./errors/connect-error.ts";
import { type Admitted, GateError } from "./gate/gate.ts";

/** Starts the observation of a call. */
export type Observe = (call: IncomingCall, rpc: string, route?: HttpRoute) => Observation;

/** Collects the record of one call while it runs. No stage of the call reads it, except its trace and whether it failed. */
export class Observation {
  /** Undefined if the caller names no trace and this server exports none. */
  readonly trace: CallTrace | undefined;
  /** By performance.now(). */
  readonly startedAt: number;
  readonly #call: IncomingCall;
  readonly #route: HttpRoute | undefined;
  readonly #report: (record: CallRecord) => void;
  #rpc: string;
  #admitted: Admitted | undefined;
  #model: string | undefined;
  #generation: StartedGeneration | undefined;
  #change: ChangedByOperator | undefined;
  #failure: unknown;

  constructor(start: ObservationStart, report: (record: CallRecord) => void) {
    this.trace = start.trace;
    this.startedAt = start.startedAt;
    this.#call = start.call;
    this.#rpc = start.rpc;
    this.#route = start.route;
    this.#report = report;
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

  setModel(model: string | undefined): void {
    this.#model = model;
  }

  setGeneration(generation: StartedGeneration): void {
    this.#generation = generation;
  }

  setChange(change: ChangedByOperator): void {
    this.#change = change;
  }

  setFailure(failure: unknown): void {
    this.#failure = failure;
  }

  /** Call this once, with the code that was sent; a failure determines the code if there is one. */
  end(code: Code | 0): void {
    const endedAtMs = performance.now();
    this.#report({
      call: this.#call,
      rpc: this.#rpc,
      route: this.#route,
      trace: this.trace,
      admitted: this.#admitted,
      model: this.#model,
      generation: this.#generation,
      change: this.#change,
      failure: this.#failure,
      code,
      endedAtMs,
      seconds: (endedAtMs - this.startedAt) / 1000,
    });
  }
}

type ObservationStart = Pick<Observation, "trace" | "startedAt"> & {
  readonly call: IncomingCall;
  readonly rpc: string;
  readonly route: HttpRoute | undefined;
};

type ObserverOptions = {
  readonly log: Log;
  readonly metrics: Metrics;
  /** Undefined if this server exports no traces. */
  readonly startTrace: StartTrace | undefined;
  /** Undefined on the operator listener. */
  readonly recordFailure?: ((call: FailedCall) => void) | undefined;
};

/**
 * Counts, logs and traces each finished call: its key, what it used, how it ended, how long it took. The log line and
 * the span of a metered call wait for its settlement, which may come after the caller disconnects.
 */
export function createObserver({ log, metrics, startTrace, recordFailure }: ObserverOptions): Observe {
  return (call, rpc, route) => {
    const startedAt = performance.now();
    const parent = traceParentOf(call);
    const exported = startTrace?.(parent, startedAt);
    const trace = exported ?? (parent && new ForwardedTrace(parent));
    return new Observation({ call, rpc, route, trace, startedAt }, (record) => {
      const code = codeNameOf(record);
      countCall(metrics, record, code);
      const finish = () => {
        if (record.generation) countCharge(metrics, record);
        writeCallLine(log, record, code);
        const failed = code === "ok" ? undefined : failedCallOf(record);
        if (failed) recordFailure?.(failed);
        if (exported) endTrace(exported, record, code);
      };
      if (record.generation) record.generation.onSettled(finish);
      else finish();
    });
  };
}

/** Undefined if the call is not metered, has a ledger row, or has a key that does not exist. */
function failedCallOf(record: CallRecord): FailedCall | undefined {
  const { call, route, admitted, failure, generation } = record;
  const key = admitted?.key ?? (failure instanceof GateError ? failure.key : undefined);
  if (!key || !call.policy.metered || generation?.charge) return undefined;
  return {
    accountId: key.accountId,
    keyId: key.keyId,
    method: route ? `${route.verb} ${route.path}` : record.rpc,
    model: record.model ?? "",
    upstream: generation?.upstream ?? "",
    ...sentErrorOf(failure),
    latencyMs: Math.round(record.seconds * 1e3),
    requestId: call.requestId,
  };
}

/** The error as the caller got it over REST. Without a failure, the caller disconnected. */
function sentErrorOf(failure: unknown): Pick<FailedCall, "status" | "code" | "message"> {
  if (failure === undefined || (failure instanceof ConnectError && failure.code === Code.Canceled))
    return { status: 499, code: "canceled", message: "The caller disconnected before the reply." };
  if (failure instanceof ConnectError) {
    const { code, rawMessage: message } = toConnectError(failure);
    return { status: codeToHttpStatus(code), code: snakeCase(Code[code]), message };
  }
  const { reason, message } = ensureDomainError(failure);
  return { status: ERRORS[reason].status, code: reason, message };
}

function countCall(metrics: Metrics, record: CallRecord, code: string): void {
  const { call, rpc, model, failure, seconds } = record;
  const { protocol } = call;
  metrics.calls.inc([rpc, protocol, code]);
  metrics.latency.observe([rpc, protocol], seconds);
  if (model !== undefined) metrics.modelCalls.inc([model, code]);
  if (failure !== undefined && call.policy.access === "developer") metrics.failures.inc([reasonOf(failure)]);
}

function countCharge(metrics: Metrics, { generation, model = "" }: CallRecord): void {
  const charge = generation?.charge;
  if (!charge) return;
  metrics.charges.inc([model], Number(charge.amountMicros));
  if (charge.upstreamCostMicros !== undefined) {
    metrics.costedCharges.inc([model], Number(charge.amountMicros));
    metrics.upstreamCosts.inc([model], Number(charge.upstreamCostMicros));
  }
  const { input, cachedInput, cacheWrite, output, reasoning } = charge.usage;
  countTokens(metrics, model, "input", input);
  countTokens(metrics, model, "cached_input", cachedInput);
  countTokens(metrics, model, "cache_write", cacheWrite);
  countTokens(metrics, model, "output", output);
  countTokens(metrics, model, "reasoning", reasoning);
}

function countTokens(metrics: Metrics, model: string, kind: string, tokens: number): void {
  if (tokens > 0) metrics.tokens.inc([model, kind], tokens);
}

function endTrace(trace: ServerTrace, record: CallRecord, code: string): void {
  const { call, admitted, failure, generation } = record;
  trace.end({
    rpc: record.rpc,
    protocol: call.protocol,
    route: record.route,
    code,
    status: statusOf(failure, code),
    reason: failure === undefined ? undefined : reasonOf(failure),
    isServerFailure: isServerFailure(code),
    requestId: call.requestId,
    accountId: admitted?.key?.accountId,
    keyId: admitted?.key?.keyId,
    operatorId: admitted?.operator?.id,
    model: record.model,
    generationId: generation?.id,
    charge: generation?.charge,
    endedAtMs: record.endedAtMs,
  });
}

/** A finished call, as the log, the metrics and the trace show it. */
export type CallRecord = {
  readonly call: IncomingCall;
  /** "vx.v1.MeService/GetMe", or "none" for an address without a route. */
  readonly rpc: string;
  /** Only over REST. */
  readonly route: HttpRoute | undefined;
  readonly trace: CallTrace | undefined;
  /** Undefined if the gate did not admit the call. */
  readonly admitted: Admitted | undefined;
  /** The model and the generation of a metered call. */
  readonly model: string | undefined;
  readonly generation: StartedGeneration | undefined;
  /** What an operator changes. */
  readonly change: ChangedByOperator | undefined;
  /** Why the call failed; undefined if it succeeded, or if only its code is known. */
  readonly failure: unknown;
  readonly code: Code | 0;
  readonly endedAtMs: number;
  readonly seconds: number;
};

type ChangedByOperator = { readonly target: string; readonly amountMicros: bigint | undefined };

/** Writes the log line of a finished call. */
function writeCallLine(log: Log, record: CallRecord, code: string): void {
  const { call, admitted, failure, generation, trace, change } = record;
  // Only a bug has a stack trace.
  const isBug = (code === "internal" || code === "unknown") && !isMistakeOfCaller(failure);
  const level = isBug ? "error" : code === "unavailable" ? "warn" : "info";
  if (!log.isLevelEnabled(level)) return;
  const charge = generation?.charge;
  const line = {
    request_id: call.requestId,
    trace_id: trace?.traceId,
    span_id: trace?.spanId,
    rpc: record.rpc,
    protocol: call.protocol,
    code,
    status: statusOf(failure, code),
    duration_ms: Math.round(record.seconds * 1e6) / 1e3,
    remote: call.remoteAddress,
    account_id: admitted?.key?.accountId,
    key_id: admitted?.key?.keyId,
    operator_id: admitted?.operator?.id,
    target: change?.target,
    amount_micros: change?.amountMicros,
    model: record.model,
    upstream: generation?.upstream,
    generation_id: generation?.id,
    input_tokens: charge && inputTokensOf(charge.usage),
    output_tokens: charge && outputTokensOf(charge.usage),
    // The library serializes a bigint only after an exception, which takes 7 µs.
    cost_micros: generation ? Number(charge?.amountMicros ?? 0n) : undefined,
    reason: failure === undefined ? undefined : reasonOf(failure),
  };
  if (isBug) log.error({ ...line, err: causeOf(failure) }, "call failed");
  else if (level === "warn") log.warn({ ...line, detail: detailOf(failure) }, "call refused");
  else log.info(line, "call");
}

/** gRPC requires the code INTERNAL for some mistakes of callers. */
function isMistakeOfCaller(failure: unknown): boolean {
  return failure instanceof DomainError && ERRORS[failure.reason].status < 500;
}

/** Whether the failure counts against the server: the codes of OpenTelemetry's list that this server uses. */
function isServerFailure(code: string): boolean {
  return SERVER_FAILURES.has(code);
}

const SERVER_FAILURES: ReadonlySet<string> = new Set([
  "unknown",
  "deadline_exceeded",
  "unimplemented",
  "internal",
  "unavailable",
  "data_loss",
]);

/** The HTTP status of the failure over REST, whatever the protocol of the call; undefined if it has none. */
function statusOf(failure: unknown, code: string): number | undefined {
  if (failure === undefined) return code === "ok" ? 200 : undefined;
  return failure instanceof ConnectError ? undefined : ERRORS[ensureDomainError(failure).reason].status;
}

/** The gRPC code of a finished call, as "not_found". */
function codeNameOf({ failure, code }: CallRecord): string {
  if (failure === undefined) return code === 0 ? "ok" : snakeCase(Code[code] ?? "Unknown");
  if (failure instanceof ConnectError) return snakeCase(Code[failure.code]);
  return ERRORS[ensureDomainError(failure).reason].code.toLowerCase();
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

/** Version, trace id, id of the caller's span, flags; later versions may append fields. */
const TRACEPARENT = /^(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
const MAX_STATE_CHARACTERS = 512;
const MAX_STATE_MEMBERS = 32;
/** A key and a value, by the W3C recommendation. The value has neither "," nor "=", and does not end in a space. */
const STATE_MEMBER = /^([a-z0-9][a-z0-9_*/@-]{0,255})=[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]$/;

/** The trace that the caller continues; undefined without exactly one valid traceparent header. */
export function traceParentOf(call: Pick<IncomingCall, "headers">): TraceParent | undefined {
  const values = call.headers("traceparent");
  if (values.length !== 1) return undefined;
  const [, version, traceId, spanId, flags, more] = TRACEPARENT.exec(values[0] as string) ?? [];
  if (traceId === undefined || spanId === undefined || flags === undefined) return undefined;
  if (version === "00" && more !== undefined) return undefined;
  return { traceId, spanId, flags: Number.parseInt(flags, 16), state: traceStateOf(call) };
}

/** The tracestate headers of other tracing systems; empty if they are not valid, too long, or might have a key. */
function traceStateOf(call: Pick<IncomingCall, "headers">): string {
  const state = call.headers("tracestate").join(",");
  if (state === "" || state.length > MAX_STATE_CHARACTERS || redactKeys(state) !== state) return "";
  const members = state
    .split(",")
    .map((member) => member.trim())
    .filter((member) => member !== "");
  const keys = members.map((member) => STATE_MEMBER.exec(member)?.[1]);
  const isValid = members.length <= MAX_STATE_MEMBERS && !keys.includes(undefined);
  return isValid && new Set(keys).size === keys.length ? members.join(",") : "";
}
