import { Code, ConnectError } from "@connectrpc/connect";
import { DomainError, ERRORS } from "../domain/errors.ts";
import type { Call } from "../gate/call.ts";
import { asDomainError } from "../interceptors/connect-error.ts";
import type { Log } from "../log.ts";
import type { Metrics } from "../metrics.ts";

export type Observe = (call: Call, code: Code | 0, startedAt: number) => void;

/** Counts and logs a finished call: who, what, how it ended, how long it took. */
export function createObserver(log: Log, metrics: Metrics): Observe {
  return (call, transportCode, startedAt) => {
    const { rpc } = call;
    const seconds = (performance.now() - startedAt) / 1000;
    const code = codeName(call, transportCode);
    metrics.calls.inc({ rpc, protocol: call.protocol, code });
    metrics.latency.observe({ rpc, protocol: call.protocol }, seconds);
    const line = {
      request_id: call.requestId,
      rpc,
      protocol: call.protocol,
      code,
      ms: Math.round(seconds * 1e6) / 1e3,
      remote: call.remoteAddress,
      account_id: call.key?.accountId,
      key_id: call.key?.keyId,
      reason: call.failure === undefined ? undefined : reasonOf(call.failure),
    };
    if (!isMistakeOfCaller(call.failure) && (code === "internal" || code === "unknown"))
      log.error({ ...line, err: causeOf(call.failure) }, "call failed");
    else if (code === "unavailable") log.warn({ ...line, err: causeOf(call.failure) }, "call refused");
    else log.info(line, "call");
  };
}

/** gRPC asks for the code INTERNAL for some mistakes of callers, too. */
function isMistakeOfCaller(failure: unknown): boolean {
  return failure instanceof DomainError && ERRORS[failure.reason].status < 500;
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

function snake(name: string): string {
  return name.replace(/(?<!^)([A-Z])/g, "_$1").toLowerCase();
}
