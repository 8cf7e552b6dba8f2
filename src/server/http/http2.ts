import { createServer, type Http2Server, type ServerHttp2Session } from "node:http2";
import type { Duplex } from "node:stream";
import type { Limits } from "./limits.ts";
import { continueOnRead, type HttpHandler, type StreamHandler } from "./message.ts";

/**
 * An HTTP/2 server for connections that the listener accepts. Streams that serveStream does not take get a request and a
 * response object, which cost more than the rest of a small call.
 */
export function createHttp2(limits: Limits, serveStream: StreamHandler, handle: HttpHandler): Http2Server {
  const server = createServer({
    settings: {
      maxConcurrentStreams: limits.http2ConcurrentStreams,
      maxHeaderListSize: limits.headerBytes,
      initialWindowSize: 1_048_576,
      enablePush: false,
    },
    streamResetBurst: limits.http2ResetBurst,
    streamResetRate: limits.http2ResetsPerSecond,
    maxSessionMemory: limits.http2SessionMemoryMb,
    maxHeaderListPairs: limits.headerCount,
  });
  server.on("sessionError", () => undefined);
  // Never listens: it only creates the objects. A server with a "request" listener would do so for every stream.
  const compatible = createServer();
  compatible.on("request", handle);
  compatible.on("checkContinue", continueOnRead(handle));
  compatible.on("checkExpectation", handle);
  server.on("stream", (stream, headers, flags, rawHeaders) => {
    if (!serveStream(stream, headers, rawHeaders))
      compatible.emit("stream", stream, headers, flags, rawHeaders);
  });
  return server;
}

/** GOAWAY without an error, whose last stream is the highest possible id: 8 bytes after a header of 9. */
const SHUTDOWN_NOTICE = Buffer.from("0000080700000000007fffffff00000000", "hex");

/**
 * Tells the caller to open no further streams, and still serves those that it has already sent (RFC 9113, 6.8). A later
 * session.close() sends the final GOAWAY. Node's session.goaway() sends the same frame, but ignores all streams that arrive
 * afterwards, although the frame promises to serve them. So the frame is written beside the session, whose writes consist of
 * whole frames, and after its first one, which must be SETTINGS.
 */
export function announceClose(session: ServerHttp2Session, socket: Duplex): void {
  const write = () => {
    if (!session.closed && !session.destroyed && socket.writable) socket.write(SHUTDOWN_NOTICE);
  };
  if (session.pendingSettingsAck) session.once("localSettings", write);
  else write();
}
