import { constants, type Http2Server, type ServerHttp2Session } from "node:http2";
import {
  type AddressInfo,
  createServer as createNetServer,
  type Server as NetServer,
  type Socket,
} from "node:net";
import { setImmediate as nextTurn, setTimeout as wait } from "node:timers/promises";
import { createServer as createTlsServer, type Server as TlsServer } from "node:tls";
import { SlotArray } from "../../domain/slot-array.ts";
import type { BadRequest, BadRequestResponses } from "./bad-request.ts";
import { addressOf, ConnectionsPerAddress, closeWhenIdle, EarlyResets } from "./connections.ts";
import { Http1 } from "./http1.ts";
import { announceClose, createHttp2 } from "./http2.ts";
import { defaultLimits, type Limits } from "./limits.ts";
import {
  type HttpHandler,
  type HttpRequest,
  type HttpResponse,
  headerBytes,
  type StreamHandler,
  setRawSocket,
} from "./message.ts";
import { PacedSocket, ReadingTurns } from "./paced-socket.ts";

type ListenerOptions = {
  readonly host: string;
  readonly port: number;
  readonly tls?: TlsPair | undefined;
  readonly handler: HttpHandler;
  /** Serves streams of HTTP/2 before the handler; default: none. */
  readonly serveStream?: StreamHandler;
  readonly limits?: Limits;
  readonly refusals: BadRequestResponses;
};

/** A certificate and its key, in PEM. */
type TlsPair = { readonly cert: Buffer; readonly key: Buffer };

type OpenSession = { readonly session: ServerHttp2Session; readonly socket: PacedSocket };

/** Units of work to start a connection; see ReadingTurns. Its first bytes are counted before they are processed. */
const START_UNITS = { http1: 8, http2: 16 } as const;
const FIRST_BYTES_PER_UNIT = 32;
/** How long finished responses may take to be sent before a drain destroys the open connections. */
const FLUSH_MS = 200;

/** A listener closes after a turn that was this short and accepted nothing, or after so many turns. */
const SHORT_TURN_MS = 0.1;
const MAX_TURNS_BEFORE_CLOSE = 200;

/** One port for HTTP/1.1 and HTTP/2, distinguished by the first bytes in clear text and by ALPN over TLS. */
export class Listener {
  readonly #options: ListenerOptions;
  readonly #limits: Limits;
  readonly #server: NetServer;
  readonly #tls: TlsServer | undefined;
  readonly #http1: Http1;
  readonly #http2: Http2Server;
  readonly #turns: ReadingTurns;
  readonly #addresses: ConnectionsPerAddress;
  readonly #earlyResets: EarlyResets;
  readonly #sockets = new SlotArray<Socket>();
  readonly #sessions = new SlotArray<OpenSession>();
  #running = 0;
  #isStopping = false;
  #isDraining = false;
  /** Sessions that start are closed: their callers would get no final GOAWAY before the connections end. */
  #areSessionsEnded = false;
  #onLastCall: () => void = () => undefined;

  constructor(options: ListenerOptions) {
    this.#options = options;
    this.#limits = options.limits ?? defaultLimits;
    this.#turns = new ReadingTurns(this.#limits.unitsPerTurn);
    this.#addresses = new ConnectionsPerAddress(this.#limits.connectionsPerAddress);
    this.#earlyResets = new EarlyResets(this.#limits, () => performance.now());
    this.#http1 = new Http1(this.#limits, {
      handle: this.#serve,
      isStopping: () => this.#isStopping,
      refusals: options.refusals,
      turns: this.#turns,
    });
    this.#http2 = createHttp2(this.#limits, this.#serveStream, this.#serveHttp2);
    const accept = (socket: Socket) => this.#accept(socket);
    if (options.tls) {
      const tls = {
        ...options.tls,
        ALPNProtocols: ["h2", "http/1.1"],
        noDelay: true,
        handshakeTimeout: this.#limits.tlsHandshakeMs,
      };
      this.#tls = createTlsServer(tls, accept);
      this.#server = this.#tls;
      this.#server.on("tlsClientError", (_error, socket) => socket.destroy());
      // Connections are counted before the TLS handshake, so that a drain also ends those that never finish
      // it.
      this.#server.on("connection", (socket: Socket) => this.#track(socket));
    } else {
      this.#server = createNetServer(
        { noDelay: true, highWaterMark: this.#limits.socketBufferBytes },
        accept,
      );
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
    return this.#server.address() as AddressInfo;
  }

  /** Calls are still accepted, but each response of HTTP/1.1 is the last of its connection. */
  prepareClose(): void {
    this.#isStopping = true;
    this.#http1.endConnections();
  }

  /**
   * Refuses new connections, waits at most drainMs for running calls, aborts the rest, then closes every connection. If
   * `isGraceful`, callers that use an open connection get time to notice, and their calls are served.
   */
  async close(drainMs: number, abortCalls: () => void = () => undefined, isGraceful = false): Promise<void> {
    const endMs = performance.now() + drainMs;
    this.prepareClose();
    this.#isDraining = true;
    if (isGraceful) await this.#allAccepted();
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    if (isGraceful) await this.#endIdleConnections(endMs);
    else this.#endSessions();
    this.#http1.closeIdleConnections();
    await this.#callsEnd(endMs);
    if (this.#running > 0) abortCalls();
    await this.#endConnections();
    await closed;
    this.#http1.close();
  }

  /**
   * Resolves right after all waiting connections were accepted, one in each turn of the event loop. Those that wait when the
   * listener closes are reset, with the requests that their callers have sent: the longer its last turn takes, the more.
   */
  async #allAccepted(): Promise<void> {
    let accepted = 0;
    const count = () => accepted++;
    this.#server.on("connection", count);
    await nextTurn();
    for (let turn = 0; turn < MAX_TURNS_BEFORE_CLOSE; turn++) {
      const [before, startedAtMs] = [accepted, performance.now()];
      await nextTurn();
      if (accepted === before && performance.now() - startedAtMs < SHORT_TURN_MS) break;
    }
    this.#server.off("connection", count);
  }

  /** Resolves when all connections are closed or no call has run for the idle timeout, at the latest at `endMs`. */
  async #endIdleConnections(endMs: number): Promise<void> {
    const { idleWhileStoppingMs, goawayMs } = this.#limits;
    this.#http1.limitIdleTime(idleWhileStoppingMs);
    for (const { session, socket } of this.#sessions) announceClose(session, socket);
    const timer = setTimeout(() => this.#endSessions(), goawayMs);
    // A connection that was in use is idle from its last response on.
    do {
      await this.#callsEnd(endMs);
      await this.#socketsClose(Math.min(idleWhileStoppingMs + FLUSH_MS, endMs - performance.now()));
    } while (this.#running > 0 && performance.now() < endMs);
    clearTimeout(timer);
    this.#endSessions();
  }

  #endSessions(): void {
    this.#areSessionsEnded = true;
    for (const { session } of this.#sessions) session.close();
  }

  async #callsEnd(endMs: number): Promise<void> {
    if (this.#running === 0) return;
    const timer = setTimeout(() => this.#onLastCall(), endMs - performance.now());
    await new Promise<void>((resolve) => {
      this.#onLastCall = resolve;
    });
    clearTimeout(timer);
  }

  /** Waits a short time for finished responses to be sent, then destroys the connections that are still open. */
  async #endConnections(): Promise<void> {
    this.#http1.closeIdleConnections();
    await this.#socketsClose(FLUSH_MS);
    for (const socket of this.#sockets) socket.destroy();
    await this.#socketsClose();
  }

  /** Resolves when every connection is closed, or after maxMs. */
  async #socketsClose(maxMs?: number): Promise<void> {
    const closed = Promise.all(
      [...this.#sockets].map(
        (socket) =>
          new Promise<void>((resolve) =>
            socket.destroyed ? resolve() : socket.once("close", () => resolve()),
          ),
      ),
    );
    if (maxMs === undefined) {
      await closed;
      return;
    }
    const timeout = new AbortController();
    const late = wait(Math.max(0, maxMs), undefined, timeout).catch(() => undefined);
    await Promise.race([closed, late]);
    timeout.abort();
  }

  #accept(socket: Socket): void {
    if (!this.#options.tls) this.#track(socket);
    if (socket.destroyed) return;
    sniff(socket, this.#limits.prefaceMs, (version, firstBytes) => {
      this.#startInTurn(socket, version, firstBytes);
    });
  }

  #startInTurn(socket: Socket, version: HttpVersion, firstBytes: Buffer): void {
    this.#turns.process(() => {
      if (socket.destroyed) return;
      if (version === "http1") this.#start(socket, version, firstBytes);
      else this.#startSession(socket, firstBytes, performance.now() + this.#limits.http2FirstCallMs);
    });
  }

  /** Waits for the address of the socket if it is above the limit on early resets. */
  #startSession(socket: Socket, firstBytes: Buffer, giveUpAtMs: number): void {
    if (socket.destroyed) return;
    const waitMs = this.#earlyResets.waitMs(addressOf(socket));
    const leftMs = giveUpAtMs - performance.now();
    // A session that starts during a drain would serve new calls.
    if (this.#areSessionsEnded || (waitMs > 0 && leftMs <= 0)) socket.destroy();
    else if (waitMs === 0) this.#start(socket, "http2", firstBytes);
    else {
      const again = () => this.#turns.process(() => this.#startSession(socket, firstBytes, giveUpAtMs));
      setTimeout(again, Math.min(waitMs, leftMs)).unref();
    }
  }

  #start(raw: Socket, version: HttpVersion, firstBytes: Buffer): void {
    this.#turns.count(START_UNITS[version] + firstBytes.length / FIRST_BYTES_PER_UNIT);
    const socket = new PacedSocket(raw, { turns: this.#turns, firstBytes, lingerMs: this.#limits.lingerMs });
    if (version === "http1") {
      this.#http1.serve(socket);
      return;
    }
    const begin = (session: ServerHttp2Session) => this.#beginSession(session, socket);
    this.#http2.once("session", begin);
    this.#http2.emit("connection", socket);
    this.#http2.off("session", begin);
  }

  #beginSession(session: ServerHttp2Session, socket: PacedSocket): void {
    setRawSocket(session, socket.raw);
    const slot = this.#sessions.insert({ session, socket });
    session.once("close", () => this.#sessions.remove(slot));
    session.on("error", () => undefined);
    const address = addressOf(socket.raw);
    session.on("stream", (stream) => {
      this.#turns.count();
      if (stream.closed && this.#limits.connectionsPerAddress > 0) this.#countEarlyReset(session, address);
      socket.openCalls++;
      stream.on("close", () => {
        this.#turns.count();
        socket.openCalls--;
      });
    });
    closeWhenIdle(session, this.#limits);
    // A session reads no input while its output is blocked, so only the socket detects a caller that reads nothing.
    socket.raw.setTimeout(this.#limits.http2StreamIdleMs, () => {
      if (socket.writableLength + socket.raw.writableLength > 0) socket.destroy();
    });
    session.setLocalWindowSize(4_194_304);
    if (this.#isDraining) announceClose(session, socket);
  }

  #countEarlyReset(session: ServerHttp2Session, address: string): void {
    this.#earlyResets.add(address);
    if (session.closed || session.destroyed || this.#earlyResets.waitMs(address) === 0) return;
    session.goaway(constants.NGHTTP2_ENHANCE_YOUR_CALM);
    session.close();
  }

  #track(socket: Socket): void {
    if (!this.#addresses.admit(socket)) {
      socket.destroy();
      return;
    }
    const slot = this.#sockets.insert(socket);
    socket.once("close", () => this.#sockets.remove(slot));
  }

  #serveStream: StreamHandler = (stream, headers, rawHeaders) => {
    const { serveStream } = this.#options;
    if (!serveStream || stream.closed || this.#isTooLarge(rawHeaders)) return false;
    if (!serveStream(stream, headers, rawHeaders)) return false;
    this.#countCall(stream);
    stream.on("error", () => undefined);
    return true;
  };

  #serveHttp2 = (request: HttpRequest, response: HttpResponse): void => {
    // The packet that brought the request may also have reset it.
    if ("stream" in request && request.stream.closed) return;
    this.#serve(request, response, this.#isTooLarge(request.rawHeaders) ? "large_headers" : undefined);
  };

  /** The HTTP/1.1 parser enforces this limit; over HTTP/2 Node only announces it. */
  #isTooLarge(rawHeaders: readonly string[]): boolean {
    return headerBytes(rawHeaders) > this.#limits.headerBytes;
  }

  #serve = (request: HttpRequest, response: HttpResponse, problem: BadRequest | undefined): void => {
    this.#countCall(response);
    // A reset by the peer is not logged: code that waits for the request gets "close".
    request.on("error", ignore);
    response.on("error", ignore);
    if (problem === undefined) this.#options.handler(request, response);
    else this.#options.refusals.answer(problem, request, response);
  };

  #countCall(response: { on(event: "close", listener: () => void): unknown }): void {
    this.#running++;
    this.#turns.count();
    response.on("close", () => {
      this.#running--;
      this.#turns.count();
      if (this.#isDraining && this.#running === 0) this.#onLastCall();
    });
  }
}

const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");

type HttpVersion = "http1" | "http2";

/** Defined outside of sniff(): it stays on the socket, and a closure would keep the bytes in memory. */
const ignore = () => undefined;

/**
 * Reads just enough of a new connection to distinguish HTTP/2 with prior knowledge from HTTP/1.1, and passes it
 * on with the paused socket. A silent connection is closed.
 */
function sniff(
  socket: Socket,
  timeoutMs: number,
  found: (version: HttpVersion, firstBytes: Buffer) => void,
): void {
  let seen: Buffer = Buffer.alloc(0);
  const timer = setTimeout(() => socket.destroy(), timeoutMs);
  const stop = () => {
    clearTimeout(timer);
    socket.off("data", read);
    socket.off("close", stop);
  };
  const read = (bytes: Buffer) => {
    seen = seen.length === 0 ? bytes : Buffer.concat([seen, bytes]);
    const compared = Math.min(seen.length, PREFACE.length);
    const matches = seen.subarray(0, compared).equals(PREFACE.subarray(0, compared));
    if (matches && compared < PREFACE.length) return;
    stop();
    socket.pause();
    found(matches ? "http2" : "http1", seen);
  };
  // Ignores errors of the socket; "close" follows each of them.
  socket.on("error", ignore);
  socket.on("close", stop);
  socket.on("data", read);
}
