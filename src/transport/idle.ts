import type { Server as Http1Server } from "node:http";
import { constants, type Http2Server, type ServerHttp2Session, type ServerHttp2Stream } from "node:http2";
import type { Socket } from "node:net";
import type { HttpResponse } from "./http.ts";

/** Ends streams on which nothing moves for so long, where it is the caller who should move; a call may take its time. */
export function endIdleStreams(server: Http2Server, idleMs: number): void {
  server.on("stream", (stream: ServerHttp2Stream) => {
    stream.setTimeout(idleMs);
    stream.on("timeout", () => {
      const isSending = !stream.readableEnded && !stream.endAfterHeaders;
      const isUnread = stream.writableLength > 0 || stream.writableEnded;
      // Without a code it would wait until the answer is read.
      if (isSending || isUnread) stream.close(constants.NGHTTP2_CANCEL);
      else stream.setTimeout(idleMs);
    });
  });
}

export type SessionLimits = {
  readonly http2FirstCallMs: number;
  readonly http2SessionIdleMs: number;
};

/** Ends a session that never makes a call, or none for long. */
export function endIdleSession(
  session: ServerHttp2Session,
  socket: Socket,
  { http2FirstCallMs, http2SessionIdleMs }: SessionLimits,
): void {
  // Not the session's own time out: a ping now and then would put it off.
  const first = setTimeout(() => session.destroy(), http2FirstCallMs).unref();
  session.once("stream", () => clearTimeout(first));
  socket.once("close", () => clearTimeout(first));
  session.setTimeout(http2SessionIdleMs, () => {
    session.close();
    // Once its calls are done it would wait for the caller to close the connection, too.
    socket.setTimeout(http2FirstCallMs, () => {
      if (session.destroyed) socket.destroy();
    });
  });
}

/** The same for answers over HTTP/1.1; how long a request may take has limits of its own there. */
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
