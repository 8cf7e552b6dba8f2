import type { Delta } from "../domain/output.ts";
import type { Generation } from "./generation.ts";
import type { Piece } from "./generation-request.ts";

type Result = IteratorResult<Piece, undefined>;

const END = { done: true, value: undefined } as const;

/** The pieces of a generation, then its reply. */
export class GenerationPieces implements AsyncIterator<Piece, undefined> {
  readonly #generation: Generation;
  readonly #model: string;
  #isEnded = false;

  constructor(generation: Generation) {
    this.#generation = generation;
    this.#model = generation.spec.model.id;
  }

  /** Not an async function: each would create two objects more for each piece. */
  next(): Promise<Result> {
    return this.#isEnded ? Promise.resolve(END) : this.#generation.nextDelta().then(this.#onDelta);
  }

  /** Called when the reader stops before the end. */
  async return(): Promise<IteratorReturnResult<undefined>> {
    this.#isEnded = true;
    this.#generation.detach("disconnected");
    return END;
  }

  readonly #onDelta = (delta: Delta | undefined): Result | Promise<Result> => {
    if (delta === undefined) return this.#readReply();
    return { done: false, value: { kind: "delta", id: this.#generation.id, model: this.#model, delta } };
  };

  async #readReply(): Promise<Result> {
    this.#isEnded = true;
    return { done: false, value: { kind: "reply", reply: await this.#generation.reply() } };
  }
}
