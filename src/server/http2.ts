import { createServer, type Http2Server } from "node:http2";
import { continueOnRead } from "./flood/continue-on-read.ts";
import type { HttpHandler } from "./http.ts";
import type { Limits } from "./listener-limits.ts";

/** An HTTP/2 server for connections that the listener accepts. */
export function createHttp2(limits: Limits, handle: HttpHandler): Http2Server {
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
  server.on("request", handle);
  server.on("checkContinue", continueOnRead(handle));
  server.on("checkExpectation", handle);
  return server;
}
