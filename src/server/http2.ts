import { createServer, type Http2Server } from "node:http2";
import { continueOnRead } from "./flood/continue-on-read.ts";
import type { HttpHandler, StreamHandler } from "./http.ts";
import type { Limits } from "./listener-limits.ts";

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
