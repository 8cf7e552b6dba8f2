import { type AddressInfo, createServer as createNetServer, type Server as NetServer, type Socket } from "node:net";
import { setImmediate as nextTurn, setTimeout as wait } from "node:timers/promises";
import { createServer as createTlsServer, type Server as TlsServer } from "node:tls";
import { SlotArray } from "../../domain/slot-array.ts";
import { defaultLimits, type Limits } from "./connection-limits.ts";
import { addressOf, ConnectionsPerAddress } from "./connections.ts";
import { Http1 } from "./http1.ts";
import { Http2 } from "./http2.ts";
import { ReadingTurns } from "./paced-socket.ts";
import { type RequestOptions, RunningRequests } from "./running-requests.ts";

type ListenerOptions = RequestOptions & {
  readonly host: string;
  readonly port: number;
  readonly tls?: TlsPair | undefined;
  readonly limits?: Limits;
};

type TlsPair = { readonly cert: Buffer; readonly key: Buffer };

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
  readonly #http2: Http2;
  readonly #turns: ReadingTurns;
  readonly #requests: RunningRequests;
  readonly #addresses: ConnectionsPerAddress;
  readonly #sockets = new SlotArray<Socket>();

  constructor(options: ListenerOptions) {
    this.#options = options;
    this.#limits = options.limits ?? defaultLimits;
    this.#turns = new ReadingTurns(this.#limits.unitsPerTurn);
    this.#addresses = new ConnectionsPerAddress(this.#limits.connectionsPerAddress);
    this.#requests = new RunningRequests(options, this.#turns, this.#limits.headerBytes);
    this.#http1 = new Http1(this.#limits, this.#turns, this.#requests);
    this.#http2 = new Http2(this.#limits, this.#turns, this.#requests);
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
      this.#server = createNetServer({ noDelay: true, highWaterMark: this.#limits.socketBufferBytes }, accept);
    }
    this.#server.maxConnections = this.#limits.connections;
  }

  get running(): number {
    return this.#requests.count;
  }

  get connections(): number {
    return this.#sockets.size;
  }

  get port(): number | undefined {
    return (this.#server.address() as AddressInfo | null)?.port;
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
    this.#http1.endConnections();
  }

  /**
   * Refuses new connections, waits at most drainMs for running calls, aborts the rest, then closes every connection. If
   * `isGraceful`, callers that use an open connection get time to notice, and their calls are served.
   */
  async close(drainMs: number, abortCalls: () => void = () => undefined, isGraceful = false): Promise<void> {
    const endMs = performance.now() + drainMs;
    this.prepareClose();
    this.#http2.prepareClose();
    if (isGraceful) await this.#allAccepted();
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    if (isGraceful) await this.#endIdleConnections(endMs);
    else this.#http2.endSessions();
    this.#http1.closeIdleConnections();
    await this.#requests.end(endMs);
    if (this.#requests.count > 0) abortCalls();
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
    this.#http2.announceClose();
    const timer = setTimeout(() => this.#http2.endSessions(), goawayMs);
    // A connection that was in use is idle from its last response on.
    do {
      await this.#requests.end(endMs);
      await this.#socketsClose(Math.min(idleWhileStoppingMs + FLUSH_MS, endMs - performance.now()));
    } while (this.#requests.count > 0 && performance.now() < endMs);
    clearTimeout(timer);
    this.#http2.endSessions();
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
        (socket) => new Promise<void>((resolve) => (socket.destroyed ? resolve() : socket.once("close", () => resolve()))),
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
    this.#turns.process(addressOf(socket), () => {
      if (socket.destroyed) return;
      if (version === "http1") this.#http1.serve(socket, firstBytes);
      else this.#http2.serve(socket, firstBytes);
    });
  }

  #track(socket: Socket): void {
    if (!this.#addresses.admit(socket)) {
      socket.destroy();
      return;
    }
    const slot = this.#sockets.insert(socket);
    socket.once("close", () => this.#sockets.remove(slot));
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
function sniff(socket: Socket, timeoutMs: number, found: (version: HttpVersion, firstBytes: Buffer) => void): void {
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
