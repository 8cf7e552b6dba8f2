import { subscribe, unsubscribe } from "node:diagnostics_channel";
import {
  createServer as createHttp1Server,
  type Server as Http1Server,
  type IncomingMessage,
  type ServerResponse,
} from "node:http";
import {
  constants,
  createServer as createHttp2Server,
  type Http2Server,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from "node:http2";
import {
  type AddressInfo,
  createServer as createNetServer,
  type Server as NetServer,
  Socket,
} from "node:net";
import { createServer as createTlsServer, type Server as TlsServer } from "node:tls";
import { AddressCount } from "./address-count.ts";
import { FairTurns } from "./fair-turns.ts";
import { type HttpHandler, type HttpRequest, type HttpResponse, headerBytes, toOriginForm } from "./http.ts";
import { endIdleSession, endIdleSockets, endIdleStreams } from "./idle.ts";
import { defaultLimits, type Limits } from "./limits.ts";
import { lingeringClose } from "./lingering-close.ts";
import { type Reader, ReadingTurns } from "./reading-turns.ts";
import { type HttpVersion, sniff } from "./sniff.ts";
import { withoutStacks } from "./without-stacks.ts";

type ListenerOptions = {
  readonly host: string;
  readonly port: number;
  readonly tls?: { readonly cert: Buffer; readonly key: Buffer } | undefined;
  readonly handler: HttpHandler;
  readonly limits?: Limits;
  /** Answers what never becomes a request: status and body, as text ready for the wire. */
  readonly onBadRequest: (status: 400 | 408 | 431) => string;
  /** The same for a request of HTTP/2 whose headers are too large. */
  readonly onLargeHeaders: (response: HttpResponse) => void;
};

const STREAM_CREATED = "http2.server.stream.created";

/** One port for HTTP/1.1 and HTTP/2, in clear text by sniffing the first bytes, over TLS by ALPN. */
export class Listener {
  readonly #options: ListenerOptions;
  readonly #limits: Limits;
  readonly #server: NetServer | TlsServer;
  readonly #http1: Http1Server;
  readonly #http2: Http2Server;
  readonly #turns = new FairTurns();
  readonly #reading: ReadingTurns;
  readonly #addresses: AddressCount;
  readonly #readers = new WeakMap<object, Reader>();
  readonly #sockets = new Set<Socket>();
  /** The latest answer on each connection of HTTP/1.1. */
  readonly #latest = new WeakMap<Socket, HttpResponse>();
  readonly #sessions = new Set<ServerHttp2Session>();
  #running = 0;
  #draining = false;
  #idle: () => void = () => undefined;

  constructor(options: ListenerOptions) {
    this.#options = options;
    this.#limits = options.limits ?? defaultLimits;
    this.#reading = new ReadingTurns(this.#limits.workPerTurn);
    this.#addresses = new AddressCount(this.#limits.connectionsPerAddress);
    this.#http1 = this.#createHttp1();
    this.#http2 = this.#createHttp2();
    const accept = (socket: Socket) => this.#accept(socket);
    if (options.tls) {
      const tls = {
        ...options.tls,
        ALPNProtocols: ["h2", "http/1.1"],
        handshakeTimeout: this.#limits.tlsHandshakeMs,
      };
      this.#server = createTlsServer(tls, accept);
      this.#server.on("tlsClientError", (_error, socket) => socket.destroy());
      // What is counted is the connection below, from before the handshake: a drain ends those that never finish it.
      this.#server.on("connection", (socket: Socket) => this.#track(socket));
    } else {
      this.#server = createNetServer({ noDelay: true }, accept);
    }
    this.#server.maxConnections = this.#limits.connections;
  }

  get running(): number {
    return this.#running;
  }

  get connections(): number {
    return this.#sockets.size;
  }

  async open(): Promise<AddressInfo> {
    const { host, port } = this.#options;
    await new Promise<void>((resolve, reject) => {
      this.#server.once("error", reject);
      this.#server.listen({ host, port, backlog: 1024 }, () => {
        this.#server.off("error", reject);
        resolve();
      });
    });
    this.#server.on("error", () => undefined);
    subscribe(STREAM_CREATED, this.#countStream);
    return this.#server.address() as AddressInfo;
  }

  /** Takes no new calls, lets running ones finish for at most graceMs, cuts those, then ends every connection. */
  async close(graceMs: number, cutCalls: () => void = () => undefined): Promise<void> {
    this.#draining = true;
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.#http1.closeIdleConnections();
    for (const session of this.#sessions) session.close();
    if (this.#running > 0) {
      const timer = setTimeout(() => this.#idle(), graceMs);
      await new Promise<void>((resolve) => {
        this.#idle = resolve;
      });
      clearTimeout(timer);
    }
    if (this.#running > 0) cutCalls();
    await this.#endConnections();
    await closed;
    this.#http1.close();
    unsubscribe(STREAM_CREATED, this.#countStream);
  }

  /** Answers that are done get a moment to leave; a connection that does not empty is cut. */
  async #endConnections(): Promise<void> {
    this.#http1.closeIdleConnections();
    const emptied = [...this.#sockets].map(
      (socket) =>
        new Promise<void>((resolve) =>
          socket.destroyed ? resolve() : socket.once("close", () => resolve()),
        ),
    );
    const timer = setTimeout(() => {
      for (const socket of this.#sockets) socket.destroy();
    }, 200);
    await Promise.all(emptied);
    clearTimeout(timer);
  }

  #accept(socket: Socket): void {
    if (!this.#options.tls) this.#track(socket);
    if (socket.destroyed) return;
    sniff(socket, this.#limits.prefaceMs, (version, bytes) => {
      this.#reading.arrive(version, bytes, () => {
        if (!socket.destroyed) this.#begin(socket, version);
      });
    });
  }

  #begin(socket: Socket, version: HttpVersion): void {
    const reader = this.#reading.add(socket, version === "http1");
    this.#readers.set(socket, reader);
    if (version === "http1") {
      socket.destroySoon = () => this.#endAfterAnswer(socket);
      withoutStacks(socket, () => this.#http1.emit("connection", socket));
      return;
    }
    const known = (session: ServerHttp2Session) => this.#beginSession(session, socket, reader);
    this.#http2.once("session", known);
    this.#http2.emit("connection", socket);
    this.#http2.off("session", known);
  }

  #beginSession(session: ServerHttp2Session, socket: Socket, reader: Reader): void {
    this.#readers.set(session, reader);
    this.#sessions.add(session);
    session.once("close", () => this.#sessions.delete(session));
    session.on("error", () => undefined);
    endIdleSession(session, socket, this.#limits);
    session.setLocalWindowSize(4_194_304);
  }

  /** Called by Node where an answer is the last of its connection: its request may still be arriving. */
  #endAfterAnswer(socket: Socket): void {
    const request = this.#latest.get(socket)?.req;
    if (request?.complete === false) lingeringClose(socket, this.#limits.lingerMs);
    else Socket.prototype.destroySoon.call(socket);
  }

  /** As soon as there is a stream: its event comes only after all that one packet holds have been made. */
  #countStream = (message: unknown): void => {
    const { stream } = message as { readonly stream: ServerHttp2Stream };
    const { session } = stream;
    const reader = session && this.#readers.get(session);
    if (!reader || this.#reading.open(reader, stream) <= this.#limits.http2StreamsPerTurn) return;
    stream.on("error", () => undefined);
    session.destroy(new Error("too many streams in one packet"), constants.NGHTTP2_ENHANCE_YOUR_CALM);
  };

  #track(socket: Socket): void {
    if (!this.#addresses.enter(socket)) {
      socket.destroy();
      return;
    }
    this.#sockets.add(socket);
    socket.once("close", () => this.#sockets.delete(socket));
  }

  #handle = (request: HttpRequest, response: HttpResponse): void => {
    this.#turns.take(request, () => this.#serve(request, response));
  };

  #serve(request: HttpRequest, response: HttpResponse): void {
    this.#running++;
    response.once("close", () => {
      this.#running--;
      if (this.#draining && this.#running === 0) this.#idle();
    });
    // A peer that resets a request is no news; whoever waits for it sees "close".
    request.on("error", () => undefined);
    response.on("error", () => undefined);
    if (request.httpVersionMajor === 1) {
      this.#latest.set(request.socket, response);
      toOriginForm(request);
      const last = this.#draining || request.headers.host === undefined;
      if (last) response.setHeader("connection", "close");
    } else if (headerBytes(request) > this.#limits.headerBytes) {
      // Over HTTP/1.1 the parser stops there; over HTTP/2 Node only tells the limit, it does not hold it.
      this.#options.onLargeHeaders(response);
      return;
    }
    this.#options.handler(request, response);
  }

  /** The caller waits to be asked for the body: it is when somebody begins to read it, not when the call is refused. */
  #handleExpecting = (request: HttpRequest, response: HttpResponse): void => {
    const read = request.read;
    request.read = (size) => {
      request.read = read;
      if (!response.headersSent) response.writeContinue();
      return read.call(request, size);
    };
    this.#handle(request, response);
  };

  /** One packet of 64 KiB can hold 2,000 requests; a connection with so many is cut, and what it brought is dropped. */
  #mayPipeline({ socket }: IncomingMessage, response: ServerResponse): boolean {
    const reader = this.#readers.get(socket);
    if (!reader || socket.destroyed || socket.writableEnded) return false;
    this.#reading.spend(reader);
    if (++reader.unanswered > this.#limits.http1Pipelined) {
      socket.pause().destroy();
      return false;
    }
    response.once("close", () => reader.unanswered--);
    return true;
  }

  #createHttp1(): Http1Server {
    const server = createHttp1Server(
      {
        maxHeaderSize: this.#limits.headerBytes,
        // The handler refuses what has none, in the envelope; Node itself would say nothing.
        requireHostHeader: false,
        headersTimeout: this.#limits.headersMs,
        requestTimeout: this.#limits.requestMs,
        connectionsCheckingInterval: this.#limits.timeoutCheckMs,
        keepAliveTimeout: this.#limits.keepAliveMs,
      },
      (request: IncomingMessage, response: ServerResponse) => {
        if (this.#mayPipeline(request, response)) this.#handle(request, response);
      },
    );
    server.on("checkContinue", this.#handleExpecting);
    // Other expectations are nothing this server has to meet (RFC 9110, 10.1.1).
    server.on("checkExpectation", this.#handle);
    server.maxHeadersCount = this.#limits.headerCount;
    server.on("clientError", (error: NodeJS.ErrnoException, socket) => {
      if (!socket.writable || (socket as Socket).bytesWritten > 0) {
        socket.destroy();
        return;
      }
      const status =
        error.code === "HPE_HEADER_OVERFLOW" ? 431 : error.code === "ERR_HTTP_REQUEST_TIMEOUT" ? 408 : 400;
      socket.end(this.#options.onBadRequest(status));
    });
    endIdleSockets(server, this.#limits.http1ReadIdleMs, this.#latest);
    // Node starts looking at the two timeouts when a server listens; this one is handed its connections.
    server.emit("listening");
    return server;
  }

  #createHttp2(): Http2Server {
    const server = createHttp2Server({
      settings: {
        maxConcurrentStreams: this.#limits.http2ConcurrentStreams,
        maxHeaderListSize: this.#limits.headerBytes,
        initialWindowSize: 1_048_576,
        enablePush: false,
      },
      streamResetBurst: this.#limits.http2ResetBurst,
      streamResetRate: this.#limits.http2ResetsPerSecond,
      maxSessionMemory: this.#limits.http2SessionMemoryMb,
      maxHeaderListPairs: this.#limits.headerCount,
    });
    server.on("sessionError", () => undefined);
    endIdleStreams(server, this.#limits.http2StreamIdleMs);
    server.on("request", this.#handle);
    server.on("checkContinue", this.#handleExpecting);
    server.on("checkExpectation", this.#handle);
    return server;
  }
}
