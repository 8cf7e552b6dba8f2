import { subscribe, unsubscribe } from "node:diagnostics_channel";
import type { Server as Http1Server, IncomingMessage, ServerResponse } from "node:http";
import { constants, type Http2Server, type ServerHttp2Session, type ServerHttp2Stream } from "node:http2";
import {
  type AddressInfo,
  createServer as createNetServer,
  type Server as NetServer,
  Socket,
} from "node:net";
import { createServer as createTlsServer, type Server as TlsServer } from "node:tls";
import { SlotArray } from "../domain/slot-array.ts";
import type { BadRequestAnswers } from "./errors/bad-request.ts";
import { withoutStacks } from "./errors/without-stacks.ts";
import { AddressCount } from "./flood/address-count.ts";
import { FairTurns } from "./flood/fair-turns.ts";
import { endIdleSession, endIdleSockets } from "./flood/idle.ts";
import { lingeringClose } from "./flood/lingering-close.ts";
import { type Reader, ReadingTurns } from "./flood/reading-turns.ts";
import { framingProblem } from "./framing.ts";
import { type HttpHandler, type HttpRequest, type HttpResponse, headerBytes, toOriginForm } from "./http.ts";
import { createHttp1 } from "./http1.ts";
import { createHttp2 } from "./http2.ts";
import { defaultLimits, type Limits } from "./listener-limits.ts";
import { type HttpVersion, sniff } from "./sniff.ts";

type ListenerOptions = {
  readonly host: string;
  readonly port: number;
  readonly tls?: TlsPair | undefined;
  readonly handler: HttpHandler;
  readonly limits?: Limits;
  readonly refusals: BadRequestAnswers;
};

/** A certificate and its key, in PEM. */
type TlsPair = { readonly cert: Buffer; readonly key: Buffer };

const STREAM_CREATED = "http2.server.stream.created";

/** One port for HTTP/1.1 and HTTP/2, told apart by the first bytes in clear text and by ALPN over TLS. */
export class Listener {
  readonly #options: ListenerOptions;
  readonly #limits: Limits;
  readonly #server: NetServer;
  readonly #tls: TlsServer | undefined;
  readonly #http1: Http1Server;
  readonly #http2: Http2Server;
  readonly #turns = new FairTurns();
  readonly #reading: ReadingTurns;
  readonly #addresses: AddressCount;
  readonly #readers = new WeakMap<object, Reader>();
  readonly #sockets = new SlotArray<Socket>();
  /** The latest response on each HTTP/1.1 connection. */
  readonly #latest = new WeakMap<Socket, HttpResponse>();
  /** HTTP/1.1 connections with a framing problem: the boundaries of further requests are unknown. */
  readonly #refused = new WeakSet<Socket>();
  readonly #sessions = new SlotArray<ServerHttp2Session>();
  #running = 0;
  #draining = false;
  #idle: () => void = () => undefined;

  constructor(options: ListenerOptions) {
    this.#options = options;
    this.#limits = options.limits ?? defaultLimits;
    this.#reading = new ReadingTurns(this.#limits.workPerTurn);
    this.#addresses = new AddressCount(this.#limits.connectionsPerAddress);
    this.#http1 = createHttp1(this.#limits, {
      handle: this.#handle,
      mayServe: (request, response) => this.#mayPipeline(request, response),
      refusals: options.refusals,
    });
    endIdleSockets(this.#http1, this.#limits.http1ReadIdleMs, this.#latest);
    this.#http2 = createHttp2(this.#limits, this.#handle);
    const accept = (socket: Socket) => this.#accept(socket);
    if (options.tls) {
      const tls = {
        ...options.tls,
        ALPNProtocols: ["h2", "http/1.1"],
        handshakeTimeout: this.#limits.tlsHandshakeMs,
      };
      this.#tls = createTlsServer(tls, accept);
      this.#server = this.#tls;
      this.#server.on("tlsClientError", (_error, socket) => socket.destroy());
      // Connections are counted before the TLS handshake, so that a drain also ends those that never finish
      // it.
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

  /** Applies to new handshakes; open connections keep their certificate. */
  replaceTls(pair: TlsPair): void {
    this.#tls?.setSecureContext(pair);
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

  /**
   * Stops taking calls, waits at most graceMs for running ones, cuts the rest, then closes every connection.
   */
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

  /** Gives finished responses a moment to be sent, then destroys the connections that are still open. */
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
    const place = this.#sessions.insert(session);
    session.once("close", () => this.#sessions.remove(place));
    session.on("error", () => undefined);
    endIdleSession(session, socket, this.#limits);
    session.setLocalWindowSize(4_194_304);
  }

  /** Node calls this after the last response of a connection; its request may still be arriving. */
  #endAfterAnswer(socket: Socket): void {
    const request = this.#latest.get(socket)?.req;
    if (request?.complete === false) lingeringClose(socket, this.#limits.lingerMs);
    else Socket.prototype.destroySoon.call(socket);
  }

  /**
   * Counts a stream when it is created: Node emits "stream" only after it has created all streams of a
   * packet.
   */
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
    const place = this.#sockets.insert(socket);
    socket.once("close", () => this.#sockets.remove(place));
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
    // A reset by the peer is not logged: code that waits for the request gets "close".
    request.on("error", () => undefined);
    response.on("error", () => undefined);
    if (request.httpVersionMajor === 1) {
      if (!this.#beginHttp1(request as IncomingMessage, response)) return;
    } else if (headerBytes(request) > this.#limits.headerBytes) {
      // The HTTP/1.1 parser enforces this limit; over HTTP/2 Node only announces it.
      this.#options.refusals.answer("large_headers", response);
      return;
    }
    this.#options.handler(request, response);
  }

  /** False if the request is refused; further requests on the connection are then ignored. */
  #beginHttp1(request: IncomingMessage, response: HttpResponse): boolean {
    const { socket } = request;
    if (this.#refused.has(socket)) return false;
    this.#latest.set(socket, response);
    toOriginForm(request);
    const problem = framingProblem(request);
    const isLast = this.#draining || problem !== undefined || request.headers.host === undefined;
    if (isLast) response.setHeader("connection", "close");
    if (problem === undefined) return true;
    this.#refused.add(socket);
    this.#options.refusals.answer(problem, response);
    return false;
  }

  /**
   * One packet of 64 KiB can hold 2,000 requests. A connection over the limit is destroyed and its data
   * dropped.
   */
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
}
