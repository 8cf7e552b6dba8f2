import { Code, ConnectError } from "@connectrpc/connect";
import { codeToHttpStatus } from "@connectrpc/connect/protocol-connect";
import { CallerDisconnected } from "../../codec/body.ts";
import { ForwardedTrace, type TraceParent } from "../../domain/call-trace.ts";
import { redactKeys } from "../../domain/credentials.ts";
import { DomainError, ERRORS, isRefusal } from "../../domain/errors.ts";
import { inputTokensOf, outputTokensOf } from "../../domain/price.ts";
import type { FailedCall } from "../../failures/store.ts";
import type { Log } from "../../telemetry/log.ts";
import type { Metrics } from "../../telemetry/metrics.ts";
import type { ServerTrace, StartTrace } from "../../telemetry/telemetry.ts";
import type { Call } from "../call.ts";
import { ensureDomainError, fromRequestError, toConnectError } from "../errors/connect-error.ts";
import { GateError } from "./authenticate-key.ts";
import type { Interceptor } from "./interceptor.ts";

export type ObserverOptions = {
  readonly log: Log;
  readonly metrics: Metrics;
  /** Undefined if this server exports no traces. */
  readonly startTrace: StartTrace | undefined;
  /** Undefined on the operator listener. */
  readonly recordFailure?: ((call: FailedCall) => void) | undefined;
};

/**
 * Sends the error of a call. Counts, logs and traces each finished call: its key, what it used, how it ended, how long it took. The log
 * line and the span of a metered call wait for its settlement, which may come after the caller disconnects.
 */
export function observe({ log, metrics, startTrace, recordFailure }: ObserverOptions): Interceptor {
  return withEnd((call) => {
    const parent = traceParentOf(call);
    const exported = startTrace?.(parent, call.startedAt);
    call.trace = exported ?? (parent && new ForwardedTrace(parent));
    return (sent) => {
      const endedAtMs = performance.now();
      const record = { call, sent, endedAtMs, seconds: (endedAtMs - call.startedAt) / 1000 };
      const code = codeNameOf(record);
      countCall(metrics, record, code);
      const finish = () => {
        if (call.generation) countCharge(metrics, call);
        writeCallLine(log, record, code);
        const failed = code === "ok" ? undefined : failedCallOf(record);
        if (failed) recordFailure?.(failed);
        if (exported) endTrace(exported, record, code);
      };
      if (call.generation) call.generation.onSettled(finish);
      else finish();
    };
  });
}

/** Sends the error of a call; `start` returns what is called with the code of the response, which a failure of the call determines. */
export function withEnd(start: (call: Call) => (sent: Code | 0) => void): Interceptor {
  return (next) => async (call) => {
    const end = start(call);
    let sent: Code | 0 = 0;
    try {
      await next(call);
      if (!call.headersSent) throw new CallerDisconnected();
    } catch (error) {
      sent = await sendFailure(call, error);
    } finally {
      if (call.abortError) call.failure = call.abortError;
      end(sent);
    }
  };
}

/** Sends an error, once; returns the code for the log if the failure itself does not have it. */
async function sendFailure(call: Call, error: unknown): Promise<Code | 0> {
  if (call.abortError) return 0;
  if (error instanceof CallerDisconnected) return Code.Canceled;
  const known = error instanceof ConnectError ? error : fromRequestError(error);
  call.failure = known;
  await call.sendError(known);
  return 0;
}

/** A finished call, as the log, the metrics and the trace show it. */
type CallRecord = {
  readonly call: Call;
  readonly sent: Code | 0;
  readonly endedAtMs: number;
  readonly seconds: number;
};

/** Undefined if the call is not metered, has a ledger row, or has a key that does not exist. */
function failedCallOf({ call, seconds }: CallRecord): FailedCall | undefined {
  const { route, admitted, failure, generation } = call;
  const key = admitted?.key ?? (failure instanceof GateError ? failure.key : undefined);
  if (!key || !call.policy.metered || generation?.charge) return undefined;
  return {
    accountId: key.accountId,
    keyId: key.keyId,
    method: route ? `${route.verb} ${route.path}` : call.method.rpc,
    model: call.model ?? "",
    upstream: generation?.upstream ?? "",
    ...sentErrorOf(failure),
    latencyMs: Math.round(seconds * 1e3),
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

function countCall(metrics: Metrics, { call, seconds }: CallRecord, code: string): void {
  const { protocol, model, failure } = call;
  const { rpc } = call.method;
  metrics.calls.inc([rpc, protocol, code]);
  metrics.latency.observe([rpc, protocol], seconds);
  if (model !== undefined) metrics.modelCalls.inc([model, code]);
  if (failure !== undefined && call.policy.access === "developer") metrics.failures.inc([reasonOf(failure)]);
}

function countCharge(metrics: Metrics, { generation, model = "" }: Call): void {
  const charge = generation?.charge;
  if (!charge) return;
  metrics.charges.inc([model], Number(charge.amountMicros));
  if (charge.upstreamCostMicros !== undefined) {
    metrics.costedCharges.inc([model], Number(charge.amountMicros));
    metrics.upstreamCosts.inc([model], Number(charge.upstreamCostMicros));
  }
  const { input, cachedInput, cacheWrite, output, reasoning } = charge.usage;
  const counts = { input, cached_input: cachedInput, cache_write: cacheWrite, output, reasoning };
  for (const [kind, tokens] of Object.entries(counts)) if (tokens > 0) metrics.tokens.inc([model, kind], tokens);
}

function endTrace(trace: ServerTrace, { call, endedAtMs }: CallRecord, code: string): void {
  const { admitted, failure, generation } = call;
  trace.end({
    rpc: call.method.rpc,
    protocol: call.protocol,
    route: call.route,
    code,
    status: statusOf(failure, code),
    reason: failure === undefined ? undefined : reasonOf(failure),
    isServerFailure: SERVER_FAILURES.has(code),
    requestId: call.requestId,
    accountId: admitted?.key?.accountId,
    keyId: admitted?.key?.keyId,
    operatorId: admitted?.operator?.id,
    model: call.model,
    generationId: generation?.id,
    charge: generation?.charge,
    endedAtMs,
  });
}

/** Writes the log line of a finished call. */
function writeCallLine(log: Log, { call, seconds }: CallRecord, code: string): void {
  const { admitted, failure, generation, trace, change } = call;
  // Only a bug gets a stack trace: gRPC requires the code INTERNAL for some mistakes of callers too.
  const isBug = (code === "internal" || code === "unknown") && !isRefusal(failure);
  const level = isBug ? "error" : code === "unavailable" ? "warn" : "info";
  if (!log.isLevelEnabled(level)) return;
  const charge = generation?.charge;
  const line = {
    request_id: call.requestId,
    trace_id: trace?.traceId,
    span_id: trace?.spanId,
    rpc: call.method.rpc,
    protocol: call.protocol,
    code,
    status: statusOf(failure, code),
    duration_ms: Math.round(seconds * 1e6) / 1e3,
    remote: call.remoteAddress,
    account_id: admitted?.key?.accountId,
    key_id: admitted?.key?.keyId,
    operator_id: admitted?.operator?.id,
    target: change?.target,
    amount_micros: change?.amountMicros,
    model: call.model,
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

/** Whether the failure counts against the server: the codes of OpenTelemetry's list that this server uses. */
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
function codeNameOf({ call: { failure }, sent }: CallRecord): string {
  if (failure === undefined) return sent === 0 ? "ok" : snakeCase(Code[sent] ?? "Unknown");
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
export function traceParentOf(call: Pick<Call, "headers">): TraceParent | undefined {
  const values = call.headers("traceparent");
  if (values.length !== 1) return undefined;
  const [, version, traceId, spanId, flags, more] = TRACEPARENT.exec(values[0] as string) ?? [];
  if (traceId === undefined || spanId === undefined || flags === undefined) return undefined;
  if (version === "00" && more !== undefined) return undefined;
  return { traceId, spanId, flags: Number.parseInt(flags, 16), state: traceStateOf(call) };
}

/** The tracestate headers of other tracing systems; empty if they are not valid, too long, or might have a key. */
function traceStateOf(call: Pick<Call, "headers">): string {
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
