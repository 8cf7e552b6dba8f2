// Layers of a stream that only pass its values on. They are not async generators, which create three promises more for
// each value and save their variables each time.

export type Stream<Value> = AsyncIterableIterator<Value, undefined> & {
  /** Called by a reader that stops before the end. */
  return(): Promise<IteratorReturnResult<undefined>>;
};

const END = { done: true, value: undefined } as const;

/** A stream that is opened by the first read. */
export function openLater<Value>(open: () => Promise<AsyncIterator<Value, undefined>>): Stream<Value> {
  let opening: Promise<AsyncIterator<Value, undefined>> | undefined;
  let source: AsyncIterator<Value, undefined> | undefined;
  let isStopped = false;
  const readFirst = async () => {
    if (isStopped) return END;
    opening ??= open();
    source = await opening;
    return isStopped ? END : await source.next();
  };
  return {
    [Symbol.asyncIterator]() {
      return this;
    },
    next: () => (source ? source.next() : readFirst()),
    return: async () => {
      isStopped = true;
      const opened = await opening?.catch(() => undefined);
      await opened?.return?.();
      return END;
    },
  };
}

export function mapStream<From, To>(
  source: AsyncIterator<From, undefined>,
  map: (value: From) => To,
): Stream<To> {
  const mapResult = (result: IteratorResult<From, undefined>): IteratorResult<To, undefined> =>
    result.done === true ? result : { done: false, value: map(result.value) };
  return {
    [Symbol.asyncIterator]() {
      return this;
    },
    next: () => source.next().then(mapResult),
    return: async () => {
      await source.return?.();
      return END;
    },
  };
}
