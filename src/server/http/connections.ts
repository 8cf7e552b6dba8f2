import { constants, type ServerHttp2Session, type ServerHttp2Stream } from "node:http2";
import type { Socket } from "node:net";
import { networkOf } from "../../domain/network.ts";
import { SlotArray } from "../../domain/slot-array.ts";

export class ConnectionsPerAddress {
  readonly #maxConnections: number;
  readonly #counts = new Map<string, number>();

  /** 0: no limit. */
  constructor(maxConnections: number) {
    this.#maxConnections = maxConnections;
  }

  /** Counts a connection until it closes; false if the address is at its limit. */
  admit(socket: Socket): boolean {
    const address = addressOf(socket);
    const count = this.#counts.get(address) ?? 0;
    if (this.#maxConnections > 0 && count >= this.#maxConnections) return false;
    this.#counts.set(address, count + 1);
    socket.once("close", () => {
      const remaining = (this.#counts.get(address) ?? 1) - 1;
      if (remaining > 0) this.#counts.set(address, remaining);
      else this.#counts.delete(address);
    });
    return true;
  }
}

/** The remote address as far as limits are concerned. */
export function addressOf(socket: Socket): string {
  return networkOf(socket.remoteAddress ?? "");
}

/** Beyond this number, the address whose last reset is the oldest is removed. */
const MAX_ADDRESSES = 10_000;
const MAX_WAIT_MS = 10_000;

/**
 * Counts, per remote address, the HTTP/2 streams that are reset in the packet that opens them. They cost the caller
 * nothing, but Node's state for each is freed only by a full garbage collection. Above the limits, a session that sends one more
 * ends after its running calls, and new sessions of the address wait.
 */
export class EarlyResets {
  readonly #msPerReset: number;
  readonly #burstMs: number;
  readonly #now: () => number;
  /** When the allowance of an address, without its burst, covers all of its resets. */
  readonly #coveredAtMs = new Map<string, number>();

  constructor(limits: { readonly http2EarlyResetBurst: number; readonly http2EarlyResetsPerSecond: number }, now: () => number) {
    this.#msPerReset = 1_000 / limits.http2EarlyResetsPerSecond;
    this.#burstMs = limits.http2EarlyResetBurst * this.#msPerReset;
    this.#now = now;
  }

  add(address: string): void {
    const nowMs = this.#now();
    const coveredAtMs = Math.max(this.#coveredAtMs.get(address) ?? nowMs, nowMs) + this.#msPerReset;
    this.#coveredAtMs.delete(address);
    this.#coveredAtMs.set(address, Math.min(coveredAtMs, nowMs + this.#burstMs + MAX_WAIT_MS));
    if (this.#coveredAtMs.size <= MAX_ADDRESSES) return;
    for (const oldest of this.#coveredAtMs.keys()) {
      this.#coveredAtMs.delete(oldest);
      break;
    }
  }

  /** Milliseconds until a session of the address may start; 0 if it may start now. */
  waitMs(address: string): number {
    const coveredAtMs = this.#coveredAtMs.get(address);
    return coveredAtMs === undefined ? 0 : Math.max(coveredAtMs - this.#burstMs - this.#now(), 0);
  }
}

type SessionLimits = {
  readonly http2FirstCallMs: number;
  readonly http2SessionIdleMs: number;
  readonly http2StreamIdleMs: number;
};

/** The bytes of a stream that its caller has not read yet, and the time when this number last changed. */
type Progress = { readonly stream: ServerHttp2Stream; unreadBytes: number; sinceMs: number };

const CHECKS_PER_LIMIT = 4;

/**
 * Closes a session without a call, and cancels streams that wait for their caller. Node's own timeouts of
 * sessions and streams cannot be used: a ping restarts the first, and the second keep the streams of a closed
 * session in memory until they fire.
 */
export function closeWhenIdle(session: ServerHttp2Session, limits: SessionLimits): void {
  const { http2FirstCallMs, http2SessionIdleMs, http2StreamIdleMs } = limits;
  const streams = new SlotArray<Progress>();
  let maxIdleMs = Math.min(http2FirstCallMs, http2SessionIdleMs);
  let idleSinceMs = performance.now();
  const check = () => {
    const nowMs = performance.now();
    for (const progress of streams) {
      if (stalledMs(progress, nowMs) < http2StreamIdleMs) continue;
      // Without an error code, close() waits until the response is read.
      progress.stream.close(constants.NGHTTP2_CANCEL);
    }
    if (streams.size === 0 && nowMs - idleSinceMs >= maxIdleMs) session.close();
  };
  const checkMs = Math.min(http2FirstCallMs, http2SessionIdleMs, http2StreamIdleMs) / CHECKS_PER_LIMIT;
  const timer = setInterval(check, checkMs).unref();
  session.once("close", () => clearInterval(timer));
  session.on("stream", (stream) => {
    if (stream.closed) return;
    maxIdleMs = http2SessionIdleMs;
    const slot = streams.insert({ stream, unreadBytes: 0, sinceMs: performance.now() });
    stream.on("close", () => {
      streams.remove(slot);
      idleSinceMs = performance.now();
    });
  });
}

/** How long the stream has waited for its caller. A running call may be idle. */
function stalledMs(progress: Progress, nowMs: number): number {
  const { stream } = progress;
  const isSending = !stream.readableEnded && !stream.endAfterHeaders;
  const isAnswered = stream.headersSent && !stream.writableEnded;
  const isUnread = stream.bufferSize > 0 || stream.writableEnded;
  const isWaiting = isUnread || (isSending && !isAnswered);
  if (!isWaiting || stream.bufferSize !== progress.unreadBytes) {
    progress.unreadBytes = stream.bufferSize;
    progress.sinceMs = nowMs;
  }
  return nowMs - progress.sinceMs;
}
