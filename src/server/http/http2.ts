import { constants, createServer, type Http2Server, type ServerHttp2Session } from "node:http2";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { SlotArray } from "../../domain/slot-array.ts";
import type { Limits } from "./connection-limits.ts";
import { addressOf, closeWhenIdle, EarlyResets } from "./connections.ts";
import { continueOnRead, setRawSocket } from "./message.ts";
import { FIRST_BYTES_PER_UNIT, PacedSocket, type ReadingTurns } from "./paced-socket.ts";
import type { RunningRequests } from "./running-requests.ts";

/** Units of work to start a connection; see ReadingTurns. */
const START_UNITS = 16;

/** Serves HTTP/2 on connections that the listener accepts. */
export class Http2 {
  readonly #limits: Limits;
  readonly #turns: ReadingTurns;
  readonly #server: Http2Server;
  /** Of all sessions of an address. */
  readonly #earlyResets: EarlyResets;
  readonly #sessions = new SlotArray<{ readonly session: ServerHttp2Session; readonly socket: PacedSocket }>();
  #isClosing = false;
  /** Sessions that start are closed: their callers would get no final GOAWAY before the connections end. */
  #areSessionsEnded = false;

  constructor(limits: Limits, turns: ReadingTurns, requests: RunningRequests) {
    this.#limits = limits;
    this.#turns = turns;
    this.#server = createHttp2(limits, requests);
    this.#earlyResets = new EarlyResets(limits, now);
  }

  /** Waits for the address of the socket if it is above the limit on early resets. */
  serve(raw: Socket, firstBytes: Buffer, giveUpAtMs = performance.now() + this.#limits.http2FirstCallMs): void {
    if (raw.destroyed) return;
    const address = addressOf(raw);
    const waitMs = this.#earlyResets.waitMs(address);
    const leftMs = giveUpAtMs - performance.now();
    // A session that starts during a drain would serve new calls.
    if (this.#areSessionsEnded || (waitMs > 0 && leftMs <= 0)) raw.destroy();
    else if (waitMs === 0) this.#start(raw, firstBytes);
    else {
      const again = () => this.#turns.process(address, () => this.serve(raw, firstBytes, giveUpAtMs));
      setTimeout(again, Math.min(waitMs, leftMs)).unref();
    }
  }

  /** From now on, new sessions are told to open no further streams. */
  prepareClose(): void {
    this.#isClosing = true;
  }

  /** Tells the callers of all sessions to open no further streams. */
  announceClose(): void {
    for (const { session, socket } of this.#sessions) announceClose(session, socket);
  }

  endSessions(): void {
    this.#areSessionsEnded = true;
    for (const { session } of this.#sessions) session.close();
  }

  #start(raw: Socket, firstBytes: Buffer): void {
    this.#turns.count(START_UNITS + firstBytes.length / FIRST_BYTES_PER_UNIT);
    const socket = new PacedSocket(raw, { turns: this.#turns, firstBytes, lingerMs: this.#limits.lingerMs });
    const begin = (session: ServerHttp2Session) => this.#beginSession(session, socket);
    this.#server.once("session", begin);
    this.#server.emit("connection", socket);
    this.#server.off("session", begin);
  }

  #beginSession(session: ServerHttp2Session, socket: PacedSocket): void {
    setRawSocket(session, socket.raw);
    const slot = this.#sessions.insert({ session, socket });
    session.once("close", () => this.#sessions.remove(slot));
    session.on("error", () => undefined);
    const isAddressLimited = this.#limits.connectionsPerAddress > 0;
    const earlyResets = isAddressLimited ? this.#earlyResets : new EarlyResets(this.#limits, now);
    session.on("stream", (stream) => {
      this.#turns.count();
      if (stream.closed) {
        this.#turns.count();
        countEarlyReset(session, socket, earlyResets);
        return;
      }
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
    if (this.#isClosing) announceClose(session, socket);
  }
}

const now = () => performance.now();

/** A session that exceeds the allowance ends after its running calls. Node ignores the requests that its caller sends meanwhile. */
function countEarlyReset(session: ServerHttp2Session, socket: PacedSocket, earlyResets: EarlyResets): void {
  const { address } = socket;
  earlyResets.add(address);
  if (session.closed || session.destroyed || earlyResets.waitMs(address) === 0) return;
  if (socket.openCalls === 0) {
    session.destroy(undefined, constants.NGHTTP2_ENHANCE_YOUR_CALM);
    return;
  }
  session.goaway(constants.NGHTTP2_ENHANCE_YOUR_CALM);
  session.close();
}

/**
 * Node would destroy a session above its limit on resets, with all running calls, also those of other callers behind a proxy. Clients
 * cancel streams that they no longer need. Only early resets are limited, see EarlyResets: others cost as much as their calls.
 */
const UNLIMITED = 2 ** 32 - 1;

/**
 * Streams that `serveStream` does not take get a request and a response object, which cost more than the rest of a small call.
 */
function createHttp2(limits: Limits, requests: RunningRequests): Http2Server {
  const server = createServer({
    settings: {
      maxConcurrentStreams: limits.http2ConcurrentStreams,
      maxHeaderListSize: limits.headerBytes,
      initialWindowSize: 1_048_576,
      enablePush: false,
    },
    streamResetBurst: UNLIMITED,
    streamResetRate: UNLIMITED,
    maxSessionMemory: limits.http2SessionMemoryMb,
    maxHeaderListPairs: limits.headerCount,
  });
  server.on("sessionError", () => undefined);
  // Never listens: it only creates the objects. A server with a "request" listener would do so for every stream.
  const compatible = createServer();
  const { serveStream, serveHttp2 } = requests;
  compatible.on("request", serveHttp2);
  compatible.on("checkContinue", continueOnRead(serveHttp2));
  compatible.on("checkExpectation", serveHttp2);
  server.on("stream", (stream, headers, flags, rawHeaders) => {
    // The packet that brought the request has also reset it.
    if (stream.closed) return;
    if (!serveStream(stream, headers, rawHeaders)) compatible.emit("stream", stream, headers, flags, rawHeaders);
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
function announceClose(session: ServerHttp2Session, socket: Duplex): void {
  const write = () => {
    if (!session.closed && !session.destroyed && socket.writable) socket.write(SHUTDOWN_NOTICE);
  };
  if (session.pendingSettingsAck) session.once("localSettings", write);
  else write();
}
