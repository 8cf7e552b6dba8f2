import type { ServerHttp2Stream } from "node:http2";
import type { Socket } from "node:net";
import { Places } from "../../domain/places.ts";
import type { HttpVersion } from "../sniff.ts";

/** What Node's own net and http modules call to stop and go on; a socket that HTTP/2 has taken can be held in no other way. */
type Handle = {
  readonly writeQueueSize: number;
  readonly reading?: boolean;
  readStart(): void;
  readStop(): void;
};

export type Reader = {
  readonly socket: Socket;
  readonly isHttp1: boolean;
  /** The turn in which it last asked for work; how much that was, and how many streams it opened. */
  turn: number;
  pieces: number;
  opened: number;
  isHeld: boolean;
  /** Requests of HTTP/1.1 that are not answered yet. */
  unanswered: number;
  /** Streams of HTTP/2 that are open. */
  streams: number;
};

/** What every connection may ask of every turn counts little: many callers with a request each are no flood. */
const FEW_PIECES = 4;
const FEW_WEIGH = 1 / 8;
/** A connection that still writes is looked at again so much later. */
const RETRY_MS = 10;
/** Of a connection alone, and of each call on it: one that is cut off is told so, logged and counted. */
const END_PIECES = 5;
const CUT_CALL_PIECES = 8;
/** So many new connections are taken on in a turn, and so many of the bytes that they have brought. */
const ARRIVALS = { http1: { perTurn: 16, bytes: 16_384 }, http2: { perTurn: 8, bytes: 4_096 } } as const;

/**
 * However much connections bring at the same moment, a turn of the event loop takes on a bounded part of it. Work is a
 * request, a stream, the end of one or of a connection. When a turn has had enough, no connection is read any more; in
 * the next one those go on that asked for nothing, then the others, those that asked the longest ago first.
 */
export class ReadingTurns {
  readonly #perTurn: number;
  readonly #readers = new Places<Reader>();
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
    const place = this.#readers.add(reader);
    // With a connection end its calls; they count as soon as that is known, for the rest follows by itself.
    const end = () => {
      this.spend(reader, END_PIECES + reader.streams + reader.unanswered * CUT_CALL_PIECES);
      reader.streams = 0;
      for (const event of ["error", "end", "close"]) socket.off(event, end);
    };
    for (const event of ["error", "end", "close"]) socket.once(event, end);
    socket.once("close", () => this.#readers.remove(place));
    return reader;
  }

  /** What a new connection has brought is taken at once, or when a turn has room for it. */
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

  /** Counts a stream; how many the connection has opened in this turn. */
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

/** False where it must wait: HTTP/2 itself reads nothing while it writes, and would be made to keep what it reads. */
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
