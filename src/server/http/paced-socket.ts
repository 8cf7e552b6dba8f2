import type { Socket } from "node:net";
import { Duplex } from "node:stream";
import { freeChunk } from "../../codec/body.ts";
import { nextTurn, Rotation, turnToEnd } from "../../domain/fairness.ts";
import { addressOf } from "./connections.ts";

/** The HTTP servers get data in pieces of this size: one piece can contain 220 of the shortest requests. */
const MAX_PIECE_BYTES = 4_096;
/** Data that certainly belongs to one body is not divided; reading this much of it counts as one unit. */
const BODY_BYTES_PER_UNIT = 2_048;
/** The first bytes of a connection are counted before they are processed. */
export const FIRST_BYTES_PER_UNIT = 32;

type PacedSocketOptions = {
  readonly turns: ReadingTurns;
  /** Data that was already read from the socket. */
  readonly firstBytes: Buffer;
  /** Time for the caller to close the connection after its last response. */
  readonly lingerMs: number;
};

type Chunk = { readonly chunk: Buffer | string; readonly encoding: BufferEncoding };

/**
 * A connection whose input and close wait for their turns. Node offers no way to pause a socket that an HTTP/2 session reads, so
 * the HTTP servers get this stream instead. They do not get the end of the data: the socket closes after it by itself.
 */
export class PacedSocket extends Duplex {
  readonly raw: Socket;
  /** Requests whose response is not complete; kept by the HTTP servers. */
  openCalls = 0;
  /** Read in the constructor: a closed socket has none. */
  readonly address: string;
  readonly #turns: ReadingTurns;
  readonly #lingerMs: number;
  #undelivered: Buffer | undefined;
  /** How many of the next bytes certainly belong to the current body. */
  #bodyBytes = 0;
  #isReaderReady = false;
  #isQueued = false;
  #lingerTimer: NodeJS.Timeout | undefined;

  constructor(raw: Socket, { turns, firstBytes, lingerMs }: PacedSocketOptions) {
    // At most one piece is buffered: a connection that is closed because of a piece reads no further ones.
    // The socket encodes strings while it writes them, without a buffer of their own.
    super({ readableHighWaterMark: MAX_PIECE_BYTES, decodeStrings: false });
    this.raw = raw;
    this.address = addressOf(raw);
    this.#turns = turns;
    this.#undelivered = firstBytes;
    this.#lingerMs = lingerMs;
    raw.on("data", (bytes: Buffer) => this.#receive(bytes));
    raw.once("close", () => void turnToEnd(this.address).then(() => this.destroy()));
  }

  /** Called while the piece with the end of the headers is read. It may contain the start of the body; the rest follows. */
  expectBody(contentLength: number): void {
    this.#bodyBytes = Math.max(0, contentLength - MAX_PIECE_BYTES);
  }

  #receive(bytes: Buffer): void {
    // Data after the last response is discarded. Closing a connection with unread data would reset it, and the
    // caller would lose the response.
    if (this.writableEnded) return;
    this.#undelivered = bytes;
    this.#queueDelivery();
    if (this.#undelivered) this.raw.pause();
  }

  #queueDelivery(): void {
    if (this.#isQueued || !this.#isReaderReady) return;
    this.#isQueued = true;
    // A large body waits for its turns like all work of large calls, so that it leaves units for other input.
    if (this.#bodyBytes > MAX_PIECE_BYTES && this.#undelivered) void nextTurn().then(this.#deliver);
    else this.#turns.process(this.address, this.#deliver);
  }

  #deliver = (): void => {
    this.#isQueued = false;
    if (this.destroyed) return;
    const bytes = this.#undelivered;
    if (bytes) {
      const size = Math.max(MAX_PIECE_BYTES, this.#bodyBytes);
      this.#undelivered = bytes.length > size ? bytes.subarray(size) : undefined;
      const piece = bytes.subarray(0, size);
      this.#bodyBytes = Math.max(0, this.#bodyBytes - piece.length);
      const isOfBody = piece.length > MAX_PIECE_BYTES;
      if (isOfBody) this.#turns.count(piece.length / BODY_BYTES_PER_UNIT);
      this.#isReaderReady = this.push(piece);
      // The HTTP servers copy what they read, and nothing is buffered at this point.
      if (isOfBody && this.readableLength === 0) freeChunk(piece);
    }
    if (this.#undelivered) process.nextTick(this.#deliverRest);
    else if (this.#isReaderReady && this.raw.isPaused()) this.raw.resume();
  };

  /** Node emits the new streams of a piece in later ticks. So they are counted before the next piece. */
  #deliverRest = (): void => this.#queueDelivery();

  override _read(): void {
    this.#isReaderReady = true;
    if (this.#undelivered) process.nextTick(this.#deliverRest);
    else if (this.raw.isPaused()) this.raw.resume();
  }

  override _write(chunk: Buffer | string, encoding: BufferEncoding, done: () => void): void {
    this.#afterWrite(this.#writeRaw(chunk, encoding), done);
  }

  override _writev(chunks: readonly Chunk[], done: () => void): void {
    this.raw.cork();
    let hasRoom = true;
    for (const { chunk, encoding } of chunks) hasRoom = this.#writeRaw(chunk, encoding);
    this.raw.uncork();
    this.#afterWrite(hasRoom, done);
  }

  /** Until the turn of its close, a response may be written to a closed connection. An error for each piece is expensive. */
  #writeRaw(chunk: Buffer | string, encoding: BufferEncoding): boolean {
    return !this.raw.writable || this.raw.write(chunk, encoding);
  }

  #afterWrite(hasRoom: boolean, done: () => void): void {
    if (hasRoom) done();
    else this.raw.once("drain", done);
  }

  override _final(done: () => void): void {
    this.#lingerTimer = setTimeout(() => this.destroy(), this.#lingerMs).unref();
    this.#undelivered = undefined;
    this.raw.end(() => done());
    this.raw.resume();
  }

  override _destroy(_error: Error | null, done: (error?: Error | null) => void): void {
    clearTimeout(this.#lingerTimer);
    this.#undelivered = undefined;
    this.raw.destroy();
    done();
  }
}

/**
 * Limits the work of one turn of the event loop, however much arrives on all connections at once. Work is
 * counted in units: a request, a stream, a piece of data, the end of a request or a stream. When a turn has used its
 * units, further input waits for the next turns. Addresses have turns in rotation, and input of one in the order of arrival.
 */
export class ReadingTurns {
  readonly #maxUnits: number;
  readonly #waiting = new Rotation<() => void>();
  #usedUnits = 0;
  #isCounting = false;

  constructor(maxUnitsPerTurn: number) {
    this.#maxUnits = maxUnitsPerTurn;
  }

  count(units = 1): void {
    this.#usedUnits += units;
    if (this.#isCounting) return;
    this.#isCounting = true;
    setImmediate(this.#startTurn);
  }

  /** Processes input of an address now, or in the first turn that has units left. */
  process(address: string, input: () => void): void {
    this.count();
    if (this.#waiting.size === 0 && this.#usedUnits <= this.#maxUnits) {
      input();
      return;
    }
    this.#waiting.add(address, input);
    setImmediate(this.#processNext);
  }

  #startTurn = (): void => {
    this.#usedUnits = 0;
    this.#isCounting = this.#waiting.size > 0;
    if (this.#isCounting) setImmediate(this.#startTurn);
  };

  /**
   * Each input runs in an immediate of its own: Node emits the new streams of an HTTP/2 session between two of
   * them, so that they are counted.
   */
  #processNext = (): void => {
    if (this.#usedUnits >= this.#maxUnits) {
      setImmediate(this.#processNext);
      return;
    }
    this.count();
    this.#waiting.take()?.();
  };
}
