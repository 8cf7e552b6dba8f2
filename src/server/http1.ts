import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { BadRequest, BadRequestAnswers } from "./errors/bad-request.ts";
import { expecting } from "./flood/expecting.ts";
import type { HttpHandler } from "./http.ts";
import type { Limits } from "./listener-limits.ts";

type Http1Options = {
  readonly handle: HttpHandler;
  /** False if the connection has too many unanswered requests or is closing. */
  readonly mayServe: (request: IncomingMessage, response: ServerResponse) => boolean;
  readonly refusals: BadRequestAnswers;
};

const PROBLEM_OF: Readonly<Record<string, BadRequest>> = {
  HPE_HEADER_OVERFLOW: "large_headers",
  ERR_HTTP_REQUEST_TIMEOUT: "timeout",
};

/** An HTTP/1.1 server for connections that the listener accepts. */
export function createHttp1(limits: Limits, { handle, mayServe, refusals }: Http1Options): Server {
  const server = createServer(
    {
      maxHeaderSize: limits.headerBytes,
      // The handler refuses a request without Host, with an error body; Node would send none.
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
  // The server may ignore other expectations (RFC 9110, 10.1.1).
  server.on("checkExpectation", handle);
  server.maxHeadersCount = limits.headerCount;
  server.on("clientError", (error: NodeJS.ErrnoException, socket) => {
    if (!socket.writable || (socket as Socket).bytesWritten > 0) {
      socket.destroy();
      return;
    }
    socket.end(refusals.rawAnswer(PROBLEM_OF[error.code ?? ""] ?? "invalid"));
  });
  // Node starts checking the two timeouts on "listening". This server never listens: the listener passes it
  // sockets.
  server.emit("listening");
  return server;
}
