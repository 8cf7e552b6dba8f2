import { nextTurn } from "../../domain/next-turn.ts";
import type { Delta } from "../../domain/output.ts";
import { UnreadDeltas } from "../unread-deltas.ts";
import type { UpstreamEnd, UpstreamEvent } from "../upstream.ts";
import type { SandboxPieces } from "./pieces.ts";
import { requestedFailure } from "./plan.ts";

export type PlannedReply = {
  readonly pieces: SandboxPieces;
  /** Before each piece. */
  readonly delayMs: number;
  /** Whether consecutive pieces are joined, if there is no delay. */
  readonly isJoined: boolean;
  /** Called after the last piece. */
  readonly end: () => UpstreamEnd;
};

type Result = IteratorResult<UpstreamEvent, undefined>;

/**
 * Pieces between two yields to the event loop; without this, a reply with no delay would block other calls.
 */
const PIECES_PER_TURN = 60;
const END = { done: true, value: undefined } as const;

/** The events of a reply that the first read starts. Not an async generator: see MappedStream. */
export class SandboxReply implements AsyncIterableIterator<UpstreamEvent, undefined> {
  readonly #signal: AbortSignal;
  readonly #start: () => Promise<PlannedReply | UpstreamEnd>;
  #reply: PlannedReply | undefined;
  #pauses: Pauses | undefined;
  /** Pieces that were taken and not read. */
  #ready: Iterator<Delta, unknown> | undefined;
  #isEnded = false;

  /** The reply to a task that has no pieces is its end. */
  constructor(signal: AbortSignal, start: () => Promise<PlannedReply | UpstreamEnd>) {
    this.#signal = signal;
    this.#start = start;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<Result> {
    if (this.#pauses && !this.#ready && this.#reply?.pieces.hasMore) {
      return this.#pauses.next().then(this.#takeOne, this.#onFailure);
    }
    return this.#readOther();
  }

  async return(): Promise<IteratorReturnResult<undefined>> {
    this.#close();
    return END;
  }

  readonly #takeOne = (): Result | Promise<Result> => {
    if (this.#isEnded || !this.#reply) return END;
    const deltas = this.#reply.pieces.take();
    const [value] = deltas;
    if (value && deltas.length === 1) return { done: false, value };
    this.#ready = deltas.values();
    return this.next();
  };

  readonly #onFailure = (error: unknown): never => {
    this.#close();
    throw error;
  };

  async #readOther(): Promise<Result> {
    if (!this.#reply && !this.#isEnded) {
      const started = await this.#start().catch(this.#onFailure);
      if ("kind" in started) return this.#readEnd(started);
      if (!this.#isEnded) this.#open(started);
    }
    while (this.#reply && !this.#isEnded) {
      const next = this.#ready?.next();
      if (next?.done === false) {
        this.#checkAborted();
        return { done: false, value: next.value };
      }
      this.#ready = undefined;
      const { pieces, end } = this.#reply;
      if (pieces.isFailing) this.#onFailure(requestedFailure());
      if (!pieces.hasMore) return this.#readEnd(end());
      if (this.#pauses) return await this.next();
      await this.#takeTurn(this.#reply);
    }
    return END;
  }

  #open(reply: PlannedReply): void {
    this.#reply = reply;
    if (reply.delayMs > 0) this.#pauses = new Pauses(reply.delayMs, this.#signal);
  }

  async #takeTurn({ pieces, isJoined }: PlannedReply): Promise<void> {
    if (pieces.hasStarted) await nextTurn();
    this.#checkAborted();
    const taken: Delta[] = [];
    for (let i = 0; i < PIECES_PER_TURN && pieces.hasMore; i++) taken.push(...pieces.take());
    this.#ready = isJoined ? joinedOf(taken) : taken.values();
  }

  #readEnd(value: UpstreamEnd): Result {
    this.#close();
    return { done: false, value };
  }

  #checkAborted(): void {
    if (this.#signal.aborted) this.#onFailure(this.#signal.reason);
  }

  #close(): void {
    this.#isEnded = true;
    this.#pauses?.close();
    this.#pauses = undefined;
  }
}

function joinedOf(deltas: readonly Delta[]): Iterator<Delta, unknown> {
  const joined = new UnreadDeltas();
  for (const delta of deltas) joined.append(delta);
  return joined.takeAll();
}

type Group = { readonly endsAtMs: number; readonly timer: NodeJS.Timeout; readonly waiting: Set<() => void> };

/** By the millisecond of performance.now() in which they end. */
const groups = new Map<number, Group>();

/**
 * Equal pauses between the pieces of one reply. Pauses of all replies that end in the same millisecond share one
 * timer: Node enters and leaves its queue of promises for each timer, which takes as long as the rest of the sandbox.
 * All pauses of a reply share one listener, because one per piece would use more memory than the rest of the stream.
 */
export class Pauses {
  readonly #ms: number;
  readonly #signal: AbortSignal;
  #group: Group | undefined;
  #resolve: () => void = () => undefined;
  #fail: (reason: unknown) => void = () => undefined;

  constructor(ms: number, signal: AbortSignal) {
    this.#ms = ms;
    this.#signal = signal;
    signal.addEventListener("abort", this.#abort);
  }

  /** Throws the signal's reason when the signal aborts. */
  next(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#fail = reject;
      if (this.#signal.aborted) {
        this.#abort();
        return;
      }
      this.#group = groupAfter(this.#ms);
      this.#group.waiting.add(this.#end);
    });
  }

  /** Ends a pause at once. */
  close(): void {
    this.#leaveGroup();
    this.#signal.removeEventListener("abort", this.#abort);
    this.#resolve();
  }

  readonly #end = () => this.#resolve();

  readonly #abort = () => {
    this.#leaveGroup();
    this.#fail(this.#signal.reason);
  };

  /** The last one stops the timer: pauses can be long. */
  #leaveGroup(): void {
    const group = this.#group;
    if (!group?.waiting.delete(this.#end) || group.waiting.size > 0) return;
    clearTimeout(group.timer);
    groups.delete(group.endsAtMs);
  }
}

function groupAfter(ms: number): Group {
  const endsAtMs = Math.ceil(performance.now()) + ms;
  const known = groups.get(endsAtMs);
  if (known) return known;
  const waiting = new Set<() => void>();
  const timer = setTimeout(() => {
    groups.delete(endsAtMs);
    for (const end of waiting) end();
    waiting.clear();
  }, ms);
  const group = { endsAtMs, timer, waiting };
  groups.set(endsAtMs, group);
  return group;
}
