import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { BadRequest, BadRequestAnswers } from "./errors/bad-request.ts";
import { expecting } from "./flood/expecting.ts";
import type { HttpHandler } from "./http.ts";
import type { Limits } from "./listener-limits.ts";

type Http1Options = {
  readonly handle: HttpHandler;
  /** False where the connection has asked for too much at once, and ends. */
  readonly mayServe: (request: IncomingMessage, response: ServerResponse) => boolean;
  readonly refusals: BadRequestAnswers;
};

const PROBLEM_OF: Readonly<Record<string, BadRequest>> = {
  HPE_HEADER_OVERFLOW: "large_headers",
  ERR_HTTP_REQUEST_TIMEOUT: "timeout",
};

/** HTTP/1.1, for connections that are handed over. */
export function createHttp1(limits: Limits, { handle, mayServe, refusals }: Http1Options): Server {
  const server = createServer(
    {
      maxHeaderSize: limits.headerBytes,
      // The handler refuses what has none, in the envelope; Node itself would say nothing.
      requireHostHeader: false,
      headersTimeout: limits.headersMs,
      requestTimeout: limits.requestMs,
      connectionsCheckingInterval: limits.timeoutCheckMs,
      keepAliveTimeout: limits.keepAliveMs,
    },
    (request, response) => {
      if (mayServe(request, response)) handle(request, response);
    },
  );
  server.on("checkContinue", expecting(handle));
  // Other expectations are nothing this server has to meet (RFC 9110, 10.1.1).
  server.on("checkExpectation", handle);
  server.maxHeadersCount = limits.headerCount;
  server.on("clientError", (error: NodeJS.ErrnoException, socket) => {
    if (!socket.writable || (socket as Socket).bytesWritten > 0) {
      socket.destroy();
      return;
    }
    socket.end(refusals.rawAnswer(PROBLEM_OF[error.code ?? ""] ?? "invalid"));
  });
  // Node starts looking at the two timeouts when a server listens; this one is handed its connections.
  server.emit("listening");
  return server;
}
