import type { IncomingHttpHeaders } from "node:http";
import { connectTimeoutMs, grpcTimeoutMs } from "../rpc/deadline-header.ts";
import type { RpcForm } from "../rpc/rpc-form.ts";

/** The deadline of a call; undefined if it has none or an invalid one. */
export function timeoutMsOf(headers: IncomingHttpHeaders, protocol: RpcForm["protocol"]): number | undefined {
  return protocol === "connect"
    ? connectTimeoutMs(String(headers["connect-timeout-ms"] ?? ""))
    : grpcTimeoutMs(String(headers["grpc-timeout"] ?? ""));
}

/**
 * Replaces a deadline by its remaining time: Connect starts counting when it gets the call, which is after the
 * request was read. An invalid deadline is unchanged, and Connect refuses it.
 */
export function updateDeadline(headers: Headers, elapsedMs: number): void {
  const grpcMs = grpcTimeoutMs(headers.get("grpc-timeout") ?? "");
  if (grpcMs !== undefined) headers.set("grpc-timeout", `${remainingMs(grpcMs, elapsedMs)}m`);
  const connectMs = connectTimeoutMs(headers.get("connect-timeout-ms") ?? "");
  if (connectMs !== undefined) headers.set("connect-timeout-ms", String(remainingMs(connectMs, elapsedMs)));
}

function remainingMs(givenMs: number, elapsedMs: number): number {
  return Math.max(0, Math.ceil(givenMs - elapsedMs));
}
