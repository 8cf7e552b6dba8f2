type Result<Value> = IteratorResult<Value, undefined>;

const END = { done: true, value: undefined } as const;

/**
 * A stream that the first read opens, with each of its values mapped. Not an async generator: for each value, that
 * creates three promises more, and saves its variables in an object that other streams have displaced from the cache.
 */
export class MappedStream<From, To> implements AsyncIterableIterator<To, undefined> {
  readonly #open: () => Promise<AsyncIterator<From, undefined>>;
  readonly #map: (value: From) => To;
  #opening: Promise<AsyncIterator<From, undefined>> | undefined;
  #source: AsyncIterator<From, undefined> | undefined;
  #isStopped = false;

  constructor(open: () => Promise<AsyncIterator<From, undefined>>, map: (value: From) => To) {
    this.#open = open;
    this.#map = map;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<Result<To>> {
    return this.#source && !this.#isStopped ? this.#source.next().then(this.#onResult) : this.#readFirst();
  }

  /** Called by a reader that stops before the end. */
  async return(): Promise<IteratorReturnResult<undefined>> {
    this.#isStopped = true;
    const source = await this.#opening?.catch(() => undefined);
    await source?.return?.();
    return END;
  }

  async #readFirst(): Promise<Result<To>> {
    if (this.#isStopped) return END;
    this.#opening ??= this.#open();
    this.#source = await this.#opening;
    return await this.next();
  }

  readonly #onResult = (result: Result<From>): Result<To> | Promise<Result<To>> => {
    if (result.done === true) return result;
    try {
      return { done: false, value: this.#map(result.value) };
    } catch (error) {
      return this.#fail(error);
    }
  };

  /** The reader of a stream that failed does not close it. */
  async #fail(error: unknown): Promise<never> {
    await this.return();
    throw error;
  }
}
