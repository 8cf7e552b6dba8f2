import { Code, ConnectError } from "@connectrpc/connect";
import { DomainError, ERRORS } from "../domain/errors.ts";
import type { Log } from "../telemetry/log.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import { asDomainError } from "./errors/connect-error.ts";
import type { Call } from "./gate/call.ts";

export type Observe = (call: Call, code: Code | 0, startedAt: number) => void;

/**
 * Counts and logs a finished call: its key, what it used, how it ended, how long it took. The log line of a
 * metered call waits for its settlement, which may come after the caller disconnects.
 */
export function createObserver(log: Log, metrics: Metrics): Observe {
  return (call, transportCode, startedAt) => {
    const { rpc, generation } = call;
    const seconds = (performance.now() - startedAt) / 1000;
    const code = codeName(call, transportCode);
    metrics.calls.inc({ rpc, protocol: call.protocol, code });
    metrics.latency.observe({ rpc, protocol: call.protocol }, seconds);
    const write = () => writeLine(log, call, code, Math.round(seconds * 1e6) / 1e3);
    if (generation) generation.onSettled(write);
    else write();
  };
}

function writeLine(log: Log, call: Call, code: string, durationMs: number): void {
  const { failure, generation } = call;
  const charge = generation?.charge;
  const line = {
    request_id: call.requestId,
    rpc: call.rpc,
    protocol: call.protocol,
    code,
    status: statusOf(failure, code),
    duration_ms: durationMs,
    remote: call.remoteAddress,
    account_id: call.key?.accountId,
    key_id: call.key?.keyId,
    model: call.model,
    upstream: generation?.upstream,
    input_tokens: charge?.inputTokens,
    output_tokens: charge?.outputTokens,
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

function codeName(call: Call, transportCode: Code | 0): string {
  if (call.failure !== undefined) {
    if (call.failure instanceof ConnectError) return snake(Code[call.failure.code]);
    return ERRORS[asDomainError(call.failure).reason].code.toLowerCase();
  }
  return transportCode === 0 ? "ok" : snake(Code[transportCode] ?? "Unknown");
}

function reasonOf(failure: unknown): string {
  return failure instanceof DomainError
    ? failure.reason
    : failure instanceof ConnectError
      ? snake(Code[failure.code])
      : "internal";
}

function causeOf(failure: unknown): unknown {
  return failure instanceof DomainError ? (failure.cause ?? failure) : failure;
}

function detailOf(failure: unknown): string | undefined {
  const cause = causeOf(failure) as NodeJS.ErrnoException | undefined;
  // Node's error for several addresses that all refuse a connection has a code and no message.
  return cause?.message || cause?.code;
}

function snake(name: string): string {
  return name.replace(/(?<!^)([A-Z])/g, "_$1").toLowerCase();
}
