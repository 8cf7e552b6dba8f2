import type { Socket } from "node:net";
import { Duplex } from "node:stream";
import { freeChunk } from "../../codec/body.ts";
import { nextTurn } from "../../domain/next-turn.ts";

/** The HTTP servers get data in pieces of this size: one piece can contain 220 of the shortest requests. */
const MAX_PIECE_BYTES = 4_096;
/** Data that certainly belongs to one body is not divided; reading this much of it counts as one unit. */
const BODY_BYTES_PER_UNIT = 2_048;
/** The first bytes of a connection are counted before they are processed. */
export const FIRST_BYTES_PER_UNIT = 32;
/** The units of closing a connection, and of each open call that this aborts: an abort is handled, logged and counted. */
const UNITS_PER_CLOSE = 5;
const UNITS_PER_ABORTED_CALL = 8;

type PacedSocketOptions = {
  readonly turns: ReadingTurns;
  /** Data that was already read from the socket. */
  readonly firstBytes: Buffer;
  /** Time for the caller to close the connection after its last response. */
  readonly lingerMs: number;
};

type Chunk = { readonly chunk: Buffer | string; readonly encoding: BufferEncoding };

/**
 * A connection whose input waits for its turn: data, the end of the data, and the close of the connection. Node
 * offers no way to pause a socket that an HTTP/2 session reads, so the HTTP servers get this stream instead.
 */
export class PacedSocket extends Duplex {
  readonly raw: Socket;
  /** Requests whose response is not complete; kept by the HTTP servers. */
  openCalls = 0;
  readonly #turns: ReadingTurns;
  readonly #lingerMs: number;
  #undelivered: Buffer | undefined;
  /** How many of the next bytes certainly belong to the current body. */
  #bodyBytes = 0;
  #isReaderReady = false;
  #isQueued = false;
  #hasEnded = false;
  #lingerTimer: NodeJS.Timeout | undefined;

  constructor(raw: Socket, { turns, firstBytes, lingerMs }: PacedSocketOptions) {
    // At most one piece is buffered: a connection that is closed because of a piece reads no further ones.
    // The socket encodes strings while it writes them, without a buffer of their own.
    super({ readableHighWaterMark: MAX_PIECE_BYTES, decodeStrings: false });
    this.raw = raw;
    this.#turns = turns;
    this.#undelivered = firstBytes;
    this.#lingerMs = lingerMs;
    raw.on("data", (bytes: Buffer) => this.#receive(bytes));
    raw.once("end", () => {
      this.#hasEnded = true;
      this.#queueDelivery();
    });
    raw.once("close", () => turns.process(() => this.destroy()));
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
    else this.#turns.process(this.#deliver);
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
    if (this.#undelivered) this.#queueDelivery();
    else if (this.#hasEnded) this.#pushEnd();
    else if (this.#isReaderReady && this.raw.isPaused()) this.raw.resume();
  };

  #pushEnd(): void {
    this.#countAborts();
    this.push(null);
  }

  /** The aborts happen later in this turn or in the next one, but no other connection may add to them. */
  #countAborts(): void {
    this.#turns.count(UNITS_PER_CLOSE + this.openCalls * UNITS_PER_ABORTED_CALL);
  }

  override _read(): void {
    this.#isReaderReady = true;
    if (this.#undelivered || this.#hasEnded) this.#queueDelivery();
    else if (this.raw.isPaused()) this.raw.resume();
  }

  override _write(chunk: Buffer | string, encoding: BufferEncoding, done: () => void): void {
    this.#afterWrite(this.raw.write(chunk, encoding), done);
  }

  override _writev(chunks: readonly Chunk[], done: () => void): void {
    this.raw.cork();
    let hasRoom = true;
    for (const { chunk, encoding } of chunks) hasRoom = this.raw.write(chunk, encoding);
    this.raw.uncork();
    this.#afterWrite(hasRoom, done);
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
    this.#countAborts();
    clearTimeout(this.#lingerTimer);
    this.#undelivered = undefined;
    this.raw.destroy();
    done();
  }
}

/**
 * Limits the work of one turn of the event loop, however much arrives on all connections at once. Work is
 * counted in units: a request, a stream, a piece of data, the end of any of them. When a turn has used its
 * units, further data waits for the next turns, in the order of arrival.
 */
export class ReadingTurns {
  readonly #maxUnits: number;
  readonly #waiting: (() => void)[] = [];
  #usedUnits = 0;
  #isCounting = false;

  constructor(maxUnitsPerTurn: number) {
    this.#maxUnits = maxUnitsPerTurn;
  }

  /** Counts work of this turn. */
  count(units = 1): void {
    this.#usedUnits += units;
    if (this.#isCounting) return;
    this.#isCounting = true;
    setImmediate(this.#startTurn);
  }

  /** Processes input now, or in the first turn that has units left. */
  process(input: () => void): void {
    this.count();
    if (this.#waiting.length === 0 && this.#usedUnits <= this.#maxUnits) {
      input();
      return;
    }
    this.#waiting.push(input);
    setImmediate(this.#processNext);
  }

  #startTurn = (): void => {
    this.#usedUnits = 0;
    this.#isCounting = this.#waiting.length > 0;
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
    this.#waiting.shift()?.();
  };
}
