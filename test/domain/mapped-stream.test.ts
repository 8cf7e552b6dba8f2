import { expect, test } from "vitest";
import { MappedStream } from "../../src/generations/service.ts";

test("a value that cannot be mapped ends the stream with the error and closes its source once", async () => {
  let closed = 0;
  const source: AsyncIterator<number, undefined> = {
    next: async () => (closed > 0 ? { done: true, value: undefined } : { done: false, value: 1 }),
    return: async () => {
      closed++;
      return { done: true, value: undefined };
    },
  };
  const problem = new Error("not a number of this stream");
  const stream = new MappedStream(source, (): string => {
    throw problem;
  });
  await expect(stream.next()).rejects.toBe(problem);
  expect(closed).toBe(1);
  expect(await stream.next()).toEqual({ done: true, value: undefined });
});
