import type { Delta } from "../domain/output.ts";
import { Generation } from "./generation.ts";
import type { Piece } from "./generation-request.ts";

type Result = IteratorResult<Piece, undefined>;
/** A new generation, or the pieces of an earlier reply with the same idempotency key. */
type Started = Generation | Iterator<Piece, undefined>;

const END = { done: true, value: undefined } as const;

/** The pieces of a call that the first read starts, then its reply. Not an async generator: see MappedStream. */
export class PieceStream implements AsyncIterableIterator<Piece, undefined> {
  readonly #start: () => Promise<Started>;
  #starting: Promise<Started> | undefined;
  #generation: Generation | undefined;
  #isEnded = false;

  constructor(start: () => Promise<Started>) {
    this.#start = start;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<Result> {
    const generation = this.#generation;
    return generation && !this.#isEnded ? generation.nextDelta().then(this.#onDelta) : this.#readOther();
  }

  /** Called when the reader stops before the end. */
  async return(): Promise<IteratorReturnResult<undefined>> {
    this.#isEnded = true;
    const started = await this.#starting?.catch(() => undefined);
    if (started instanceof Generation) started.detach("disconnected");
    return END;
  }

  readonly #onDelta = (delta: Delta | undefined): Result | Promise<Result> => {
    const { id, spec } = this.#generation as Generation;
    if (delta === undefined) return this.#readReply();
    return { done: false, value: { kind: "delta", id, model: spec.model.id, delta } };
  };

  async #readReply(): Promise<Result> {
    this.#isEnded = true;
    const reply = await this.#generation?.reply();
    return reply ? { done: false, value: { kind: "reply", reply } } : END;
  }

  /** The first piece, a piece of an earlier reply, or the end. */
  async #readOther(): Promise<Result> {
    if (this.#isEnded) return END;
    this.#starting ??= this.#start();
    const started = await this.#starting;
    if (!(started instanceof Generation)) return started.next();
    this.#generation = started;
    return await this.next();
  }
}
