import type { Server as Http1Server } from "node:http";
import { constants, type Http2Server, type ServerHttp2Session, type ServerHttp2Stream } from "node:http2";
import type { Socket } from "node:net";
import type { HttpResponse } from "../http.ts";

/**
 * Ends idle streams that wait for the caller to send the request or to read the response. A running call may
 * be idle.
 */
export function endIdleStreams(server: Http2Server, idleMs: number): void {
  server.on("stream", (stream: ServerHttp2Stream) => {
    stream.setTimeout(idleMs);
    stream.on("timeout", () => {
      const isSending = !stream.readableEnded && !stream.endAfterHeaders;
      const isUnread = stream.writableLength > 0 || stream.writableEnded;
      // Without an error code, close() waits until the response is read.
      if (isSending || isUnread) stream.close(constants.NGHTTP2_CANCEL);
      else stream.setTimeout(idleMs);
    });
    stream.once("close", () => clearTimeout(timeoutOf(stream)));
  });
}

const Timeout = clearedTimeout().constructor as new () => NodeJS.Timeout;

function clearedTimeout(): NodeJS.Timeout {
  const timeout = setTimeout(() => undefined, 0);
  clearTimeout(timeout);
  return timeout;
}

/**
 * The timer of stream.setTimeout(). Node does not clear it if a stream ends with its session, and the timer
 * keeps the stream in memory until it fires.
 */
function timeoutOf(stream: ServerHttp2Stream): NodeJS.Timeout | undefined {
  const fields = stream as unknown as Record<symbol, unknown>;
  const symbol = Object.getOwnPropertySymbols(fields).find((name) => fields[name] instanceof Timeout);
  return symbol && (fields[symbol] as NodeJS.Timeout);
}

export type SessionLimits = {
  readonly http2FirstCallMs: number;
  readonly http2SessionIdleMs: number;
};

/**
 * Ends a session that makes no first call, or no further call, in time. It has its own timer: a ping would
 * reset the timeout of the session, and Node keeps a closed session in memory until that timeout fires.
 */
export function endIdleSession(
  session: ServerHttp2Session,
  socket: Socket,
  { http2FirstCallMs, http2SessionIdleMs }: SessionLimits,
): void {
  let mostIdleMs = Math.min(http2FirstCallMs, http2SessionIdleMs);
  let idleFrom = performance.now();
  let running = 0;
  let timer: NodeJS.Timeout | undefined;
  const wait = (ms: number, then: () => void) => {
    timer = setTimeout(then, ms).unref();
  };
  const look = () => {
    const leftMs = running > 0 ? mostIdleMs : idleFrom + mostIdleMs - performance.now();
    if (leftMs > 0) wait(leftMs, look);
    else end();
  };
  const end = () => {
    session.close();
    // After the last call, the socket would otherwise stay open until the caller closes it.
    wait(http2FirstCallMs, () => {
      if (session.destroyed) socket.destroy();
    });
  };
  wait(mostIdleMs, look);
  session.on("stream", (stream) => {
    mostIdleMs = http2SessionIdleMs;
    running++;
    stream.once("close", () => {
      running--;
      idleFrom = performance.now();
    });
  });
  socket.once("close", () => clearTimeout(timer));
}

/** The same for responses over HTTP/1.1; requests have their own timeouts there. */
export function endIdleSockets(
  server: Http1Server,
  idleMs: number,
  latest: WeakMap<Socket, HttpResponse>,
): void {
  server.setTimeout(idleMs, (socket: Socket) => {
    const response = latest.get(socket);
    const isWorking = response !== undefined && !response.writableEnded && socket.writableLength === 0;
    if (isWorking) socket.setTimeout(idleMs);
    else socket.destroy();
  });
}
