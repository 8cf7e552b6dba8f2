import { Code, ConnectError } from "@connectrpc/connect";
import { DomainError, ERRORS } from "../domain/errors.ts";
import { inputTokensOf, outputTokensOf } from "../domain/usage.ts";
import type { Log } from "../telemetry/log.ts";
import type { CallRecord } from "./call-record.ts";
import { asDomainError } from "./errors/connect-error.ts";

/** Writes the log line of a finished call. */
export function writeCallLine(log: Log, record: CallRecord, code: string): void {
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
export function isServerFailure(code: string): boolean {
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
export function statusOf(failure: unknown, code: string): number | undefined {
  if (failure === undefined) return code === "ok" ? 200 : undefined;
  return failure instanceof ConnectError ? undefined : ERRORS[asDomainError(failure).reason].status;
}

/** The gRPC code of a finished call, as "not_found". */
export function codeNameOf({ failure, code }: CallRecord): string {
  if (failure === undefined) return code === 0 ? "ok" : snakeCase(Code[code] ?? "Unknown");
  if (failure instanceof ConnectError) return snakeCase(Code[failure.code]);
  return ERRORS[asDomainError(failure).reason].code.toLowerCase();
}

export function reasonOf(failure: unknown): string {
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
