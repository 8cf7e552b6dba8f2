import { constants, type ServerHttp2Session, type ServerHttp2Stream } from "node:http2";
import { SlotArray } from "../../domain/slot-array.ts";

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
