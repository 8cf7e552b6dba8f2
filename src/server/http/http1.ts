import { createServer, type IncomingMessage, type Server } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { BadRequest } from "./bad-request.ts";
import type { Limits } from "./connection-limits.ts";
import { continueOnRead, type HttpRequest, type HttpResponse, headerValues, setRawSocket, toOriginForm } from "./message.ts";
import { FIRST_BYTES_PER_UNIT, PacedSocket, type ReadingTurns } from "./paced-socket.ts";
import type { RunningRequests } from "./running-requests.ts";

type Connection = {
  readonly socket: PacedSocket;
  /** The connection closes after the response to the latest request. Further requests would get no response. */
  isEnding: boolean;
  latest?: { readonly request: HttpRequest; readonly response: HttpResponse };
};

/** Units of work to start a connection; see ReadingTurns. */
const START_UNITS = 8;

const PROBLEM_OF: Readonly<Record<string, BadRequest>> = {
  HPE_HEADER_OVERFLOW: "large_headers",
  ERR_HTTP_REQUEST_TIMEOUT: "timeout",
};

/** Serves HTTP/1.1 on connections that the listener accepts. */
export class Http1 {
  readonly #limits: Limits;
  readonly #turns: ReadingTurns;
  readonly #requests: RunningRequests;
  readonly #server: Server;
  readonly #connections = new Map<Duplex, Connection>();
  #idleMs: number;
  /** Each response is the last of its connection. */
  #isStopping = false;

  constructor(limits: Limits, turns: ReadingTurns, requests: RunningRequests) {
    this.#limits = limits;
    this.#idleMs = limits.keepAliveMs;
    this.#turns = turns;
    this.#requests = requests;
    this.#server = createServer(
      {
        maxHeaderSize: limits.headerBytes,
        // The handler refuses a request without Host, with an error body; Node would send none.
        requireHostHeader: false,
        headersTimeout: limits.headersMs,
        requestTimeout: limits.requestMs,
        connectionsCheckingInterval: limits.timeoutCheckMs,
        keepAliveTimeout: limits.keepAliveMs,
        // Requests without a body are read at once, without the events of a stream.
        optimizeEmptyRequests: true,
      },
      this.#receive,
    );
    this.#server.on("checkContinue", continueOnRead(this.#receive));
    // The server may ignore other expectations (RFC 9110, 10.1.1).
    this.#server.on("checkExpectation", this.#receive);
    this.#server.maxHeadersCount = limits.headerCount;
    this.#server.on("clientError", (error: NodeJS.ErrnoException, socket) => {
      // Data after a request with "connection: close" is ignored: the response to that request may not be sent yet.
      if (error.code === "HPE_CLOSED_CONNECTION") return;
      this.#refuse(socket, PROBLEM_OF[error.code ?? ""] ?? "invalid");
    });
    // Without a listener, Node closes the connection without a response.
    this.#server.on("connect", (_request, socket) => this.#refuse(socket, "tunnel"));
    // Node starts checking the two timeouts on "listening". This server never listens: the listener passes it
    // sockets.
    this.#server.emit("listening");
  }

  serve(raw: Socket, firstBytes: Buffer): void {
    this.#turns.count(START_UNITS + firstBytes.length / FIRST_BYTES_PER_UNIT);
    const socket = new PacedSocket(raw, { turns: this.#turns, firstBytes, lingerMs: this.#limits.lingerMs });
    setRawSocket(socket, raw);
    this.#connections.set(socket, { socket, isEnding: false });
    raw.once("close", () => this.#connections.delete(socket));
    raw.setTimeout(this.#idleMs);
    raw.on("timeout", () => {
      // A running call may be idle, unless its caller does not read the response.
      const isWorking = socket.openCalls > 0 && socket.writableLength + raw.writableLength === 0;
      if (isWorking) raw.setTimeout(this.#limits.http1ReadIdleMs);
      else socket.destroy();
    });
    this.#server.emit("connection", socket);
  }

  /** Requests are still served. Responses that are not sent yet become the last ones of their connections. */
  endConnections(): void {
    this.#isStopping = true;
    for (const connection of this.#connections.values()) {
      const { socket, latest } = connection;
      if (socket.openCalls === 0 || !latest || latest.response.headersSent) continue;
      connection.isEnding = true;
      latest.response.setHeader("connection", "close");
    }
  }

  /** From now on, connections without calls are closed after this time. A request that arrives before is served. */
  limitIdleTime(idleMs: number): void {
    this.#idleMs = idleMs;
    for (const { socket } of this.#connections.values()) {
      if (socket.openCalls === 0) socket.raw.setTimeout(idleMs);
    }
  }

  closeIdleConnections(): void {
    this.#server.closeIdleConnections();
  }

  close(): void {
    this.#server.close();
  }

  /** Responds to an invalid request with an error, and closes the connection. */
  #refuse(socket: Duplex, problem: BadRequest): void {
    const connection = this.#connections.get(socket);
    if (!socket.writable || !connection || !canSendError(connection)) {
      socket.destroy();
      return;
    }
    socket.end(this.#requests.rawRefusal(problem, unfinishedRequest(connection)));
  }

  #receive = (request: HttpRequest, response: HttpResponse): void => {
    this.#turns.count();
    const connection = this.#connections.get(request.socket);
    if (!connection || connection.isEnding) return;
    const { socket } = connection;
    if (socket.destroyed || socket.writableEnded) return;
    if (socket.openCalls >= this.#limits.http1Pipelined) {
      socket.destroy();
      return;
    }
    this.#countCall(socket, response);
    connection.latest = { request, response };
    toOriginForm(request);
    const problem = framingProblem(request as IncomingMessage);
    if (!problem) socket.expectBody(Number(request.headers["content-length"] ?? 0));
    // After a framing problem, the boundaries of further requests are unknown.
    connection.isEnding = this.#isStopping || problem !== undefined || request.headers.host === undefined;
    if (connection.isEnding) response.setHeader("connection", "close");
    this.#requests.serve(request, response, problem);
  };

  #countCall(socket: PacedSocket, response: HttpResponse): void {
    if (socket.openCalls++ === 0) socket.raw.setTimeout(this.#limits.http1ReadIdleMs);
    response.on("close", () => {
      if (--socket.openCalls === 0) socket.raw.setTimeout(this.#idleMs);
    });
  }
}

/** Whether the next response that the caller expects is the one to the request that could not be parsed. */
function canSendError(connection: Connection): boolean {
  const { socket, latest } = connection;
  if (!unfinishedRequest(connection)) return socket.openCalls === 0;
  return socket.openCalls === 1 && latest?.response.headersSent === false;
}

/** The request whose body has the problem; undefined if the problem is in the headers of the next request. */
function unfinishedRequest({ latest }: Connection): HttpRequest | undefined {
  return latest?.request.complete === false ? latest.request : undefined;
}

/**
 * Framing that a proxy may read differently than this server, which allows request smuggling (RFC 9112, 3.2
 * and 6.1). Node's parser refuses conflicting lengths; it accepts these.
 */
function framingProblem(request: IncomingMessage): BadRequest | undefined {
  if (headerValues(request, "host").length > 1) return "several_hosts";
  const coding = request.headers["transfer-encoding"];
  if (coding === undefined) return undefined;
  const isChunked = coding.toLowerCase() === "chunked" && request.httpVersion === "1.1";
  return isChunked ? undefined : "transfer_encoding";
}
