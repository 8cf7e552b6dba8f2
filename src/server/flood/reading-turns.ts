import type { ServerHttp2Stream } from "node:http2";
import type { Socket } from "node:net";
import { SlotArray } from "../../domain/slot-array.ts";
import type { HttpVersion } from "../sniff.ts";

/**
 * The handle with which Node's net and http modules stop and start reading; the only way to pause an HTTP/2
 * socket.
 */
type Handle = {
  readonly writeQueueSize: number;
  readonly reading?: boolean;
  readStart(): void;
  readStop(): void;
};

export type Reader = {
  readonly socket: Socket;
  readonly isHttp1: boolean;
  /**
   * The last turn in which the connection brought work, and its pieces of work and new streams in that turn.
   */
  turn: number;
  pieces: number;
  opened: number;
  isHeld: boolean;
  /** HTTP/1.1 requests without a response yet. */
  unanswered: number;
  /** Open HTTP/2 streams. */
  streams: number;
};

/**
 * The first pieces of a connection in a turn weigh less: many callers with one request each are not a flood.
 */
const FEW_PIECES = 4;
const FEW_WEIGH = 1 / 8;
/** Delay before a connection that is still writing is checked again. */
const RETRY_MS = 10;
/**
 * The work of closing a connection, and of each call that this aborts: the abort is handled, logged and
 * counted.
 */
const END_PIECES = 5;
const CUT_CALL_PIECES = 8;
/** New connections that start in one turn, and how many of the bytes that they have sent. */
const ARRIVALS = { http1: { perTurn: 16, bytes: 16_384 }, http2: { perTurn: 8, bytes: 4_096 } } as const;

/**
 * Limits the work of one turn of the event loop, however much arrives on all connections at once. Work is a
 * request, a stream, and the end of either or of a connection. When a turn reaches the limit, reading stops
 * on all connections. The next turn resumes those that brought no work in the last one, least recently active
 * first; the others follow a turn later.
 */
export class ReadingTurns {
  readonly #perTurn: number;
  readonly #readers = new SlotArray<Reader>();
  #turn = 0;
  #spent = 0;
  #isHolding = false;
  #arrived = 0;
  readonly #arrivals: (() => void)[] = [];
  #next: NodeJS.Immediate | undefined;
  #retry: NodeJS.Timeout | undefined;

  constructor(perTurn: number) {
    this.#perTurn = perTurn;
  }

  add(socket: Socket, isHttp1: boolean): Reader {
    const reader: Reader = {
      socket,
      isHttp1,
      turn: -1,
      pieces: 0,
      opened: 0,
      isHeld: false,
      unanswered: 0,
      streams: 0,
    };
    const place = this.#readers.insert(reader);
    // Closing a connection ends its calls. Their work is counted at the first event, because the cleanup
    // follows unconditionally.
    const end = () => {
      this.spend(reader, END_PIECES + reader.streams + reader.unanswered * CUT_CALL_PIECES);
      reader.streams = 0;
      for (const event of ["error", "end", "close"]) socket.off(event, end);
    };
    for (const event of ["error", "end", "close"]) socket.once(event, end);
    socket.once("close", () => this.#readers.remove(place));
    return reader;
  }

  /** Starts a new connection at once, or in the first turn that has room for its bytes. */
  arrive(version: HttpVersion, bytes: number, start: () => void): void {
    const most = ARRIVALS[version];
    const begin = () => {
      this.#arrived += Math.max(1 / most.perTurn, bytes / most.bytes);
      start();
    };
    this.#next ??= setImmediate(this.#begin);
    if (this.#hasRoom && this.#arrivals.length === 0) begin();
    else this.#arrivals.push(begin);
  }

  /** Counts a stream; returns how many the connection has opened in this turn. */
  open(reader: Reader, stream: ServerHttp2Stream): number {
    this.spend(reader);
    reader.streams++;
    stream.once("close", () => {
      if (reader.streams === 0) return;
      reader.streams--;
      this.spend(reader);
    });
    return ++reader.opened;
  }

  /** Counts work of a connection. */
  spend(reader: Reader, pieces = 1): void {
    this.#next ??= setImmediate(this.#begin);
    if (reader.turn !== this.#turn) {
      reader.turn = this.#turn;
      reader.pieces = 0;
      reader.opened = 0;
    }
    const few = Math.max(Math.min(FEW_PIECES - reader.pieces, pieces), 0);
    reader.pieces += pieces;
    const before = this.#spent;
    this.#spent += few * FEW_WEIGH + (pieces - few);
    if (before < this.#perTurn && this.#spent >= this.#perTurn) this.#hold();
  }

  get #hasRoom(): boolean {
    return this.#arrived < 1 && this.#spent < this.#perTurn;
  }

  #hold(): void {
    this.#isHolding = true;
    for (const reader of this.#readers) {
      if (reader.isHeld) continue;
      handleOf(reader)?.readStop();
      reader.isHeld = true;
    }
  }

  #begin = (): void => {
    this.#next = undefined;
    const ended = this.#turn++;
    this.#spent = 0;
    this.#arrived = 0;
    while (this.#arrivals.length > 0 && this.#hasRoom) this.#arrivals.shift()?.();
    if (this.#arrivals.length > 0) this.#next ??= setImmediate(this.#begin);
    if (this.#isHolding) this.#release(ended);
  };

  #release(ended: number): void {
    let rests = 0;
    let writes = 0;
    const held = [...this.#readers].filter(({ isHeld }) => isHeld);
    for (const reader of held.sort((one, other) => one.turn - other.turn)) {
      if (reader.turn === ended) rests++;
      else if (goOn(reader)) reader.isHeld = false;
      else writes++;
    }
    this.#isHolding = rests + writes > 0;
    if (rests > 0) this.#next ??= setImmediate(this.#begin);
    else if (writes > 0) this.#retry ??= setTimeout(this.#again, RETRY_MS).unref();
  }

  #again = (): void => {
    this.#retry = undefined;
    this.#next ??= setImmediate(this.#begin);
  };
}
function handleOf({ socket }: Reader): Handle | undefined {
  return (socket as unknown as { readonly _handle?: Handle | null })._handle ?? undefined;
}

/**
 * False if reading must wait: an HTTP/2 session processes no input while it writes, and would have to buffer
 * it.
 */
function goOn(reader: Reader): boolean {
  const handle = handleOf(reader);
  if (!handle) return true;
  if (reader.isHttp1) {
    if (handle.reading !== false) handle.readStart();
    return true;
  }
  if (handle.writeQueueSize > 0) return false;
  handle.readStart();
  return true;
}
