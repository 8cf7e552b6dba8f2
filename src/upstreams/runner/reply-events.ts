import type { UpstreamEvent } from "../upstream.ts";
import type { Attempt } from "./attempt.ts";

/** A reply that has begun. */
export type BegunReply = { readonly attempt: Attempt; readonly first: UpstreamEvent };

type ReplyOptions = {
  /** That of the call. */
  readonly signal: AbortSignal;
  /** Waits until a reply begins. */
  readonly begin: (signal: AbortSignal) => Promise<BegunReply>;
  /** The error that the reader gets. */
  readonly errorOf: (error: unknown) => unknown;
  /** Called once after `begin`, when the reply has ended or is not read any more. */
  readonly release: () => Promise<void> | undefined;
};

type Result = IteratorResult<UpstreamEvent, undefined>;

/** The abort reason when the reader stops. */
const STOPPED = Symbol("stopped");
const END = { done: true, value: undefined } as const;

/**
 * The events of one call. Not an async generator, which would create three promises more for each event. Unlike one, it does
 * not queue reads: call `next` only after the promise before has settled.
 */
export class ReplyEvents implements AsyncIterableIterator<UpstreamEvent, undefined> {
  readonly #options: ReplyOptions;
  /** Aborted by the call's signal, or when the reader stops. */
  readonly #stop = new AbortController();
  #state: "new" | "begun" | "complete" | "closed" = "new";
  #attempt: Attempt | undefined;
  #reading: Promise<Result> | undefined;

  constructor(options: ReplyOptions) {
    this.#options = options;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<Result> {
    const reading =
      this.#attempt && this.#state === "begun"
        ? this.#attempt.next().then(this.#onEvent, this.#onError)
        : this.#readFirst();
    this.#reading = reading;
    return reading;
  }

  /** Does not wait for the upstream's next event. */
  async return(): Promise<IteratorReturnResult<undefined>> {
    if (this.#state !== "complete") this.#stop.abort(STOPPED);
    await this.#reading?.catch(() => undefined);
    await this.#close();
    return END;
  }

  /** After the end of the reply, this has nothing to read. */
  async #readFirst(): Promise<Result> {
    if (this.#state !== "new") {
      await this.#close();
      return END;
    }
    const { signal, begin } = this.#options;
    signal.throwIfAborted();
    this.#state = "begun";
    signal.addEventListener("abort", this.#onAbort, { once: true });
    try {
      const { attempt, first } = await begin(this.#stop.signal);
      this.#attempt = attempt;
      return this.#onEvent(first);
    } catch (error) {
      return await this.#onError(error);
    }
  }

  readonly #onEvent = (value: UpstreamEvent): Result => {
    if (value.kind === "done") this.#state = "complete";
    return { done: false, value };
  };

  readonly #onError = async (error: unknown): Promise<IteratorReturnResult<undefined>> => {
    await this.#close();
    const { signal } = this.#stop;
    if (signal.reason === STOPPED) return END;
    // After an abort, the reason of the abort takes precedence over the resulting error.
    signal.throwIfAborted();
    throw this.#options.errorOf(error);
  };

  readonly #onAbort = () => this.#stop.abort(this.#options.signal.reason);

  async #close(): Promise<void> {
    const state = this.#state;
    this.#state = "closed";
    if (state === "new" || state === "closed") return;
    this.#options.signal.removeEventListener("abort", this.#onAbort);
    await this.#attempt?.close();
    await this.#options.release();
  }
}
