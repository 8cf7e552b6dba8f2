import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, test } from "vitest";
import { DomainError } from "../../src/domain/errors.ts";
import { Batcher } from "../../src/store/driver/batcher.ts";

type Batch = { readonly items: readonly string[]; answer(): void; fail(error: Error): void };

/** A batcher whose batches wait until the test completes them. */
function createBatcher(
  options: { pipelines?: number; maxBatch?: number; maxWaiting?: number; hasOthers?: () => boolean } = {},
) {
  const batches: Batch[] = [];
  const sizes: number[] = [];
  const batcher = new Batcher<string, string>({
    pipelines: 1,
    maxBatch: 100,
    maxWaiting: 100,
    ...options,
    execute: (items) => {
      const { promise, resolve, reject } = Promise.withResolvers<readonly string[]>();
      batches.push({ items, answer: () => resolve(items.map((item) => `done ${item}`)), fail: reject });
      return promise;
    },
    onBatch: (size) => sizes.push(size),
  });
  /** Waits until only the completion of a batch can change anything. */
  const settle = async () => {
    for (let i = 0; i < 3; i++) await nextTurn();
  };
  return { batcher, batches, sizes, settle };
}

test("items of one turn are sent in one batch, and each gets the result for it", async () => {
  const { batcher, batches, settle } = createBatcher();
  const results = Promise.all(["a", "b", "c"].map((item, lane) => batcher.submit(lane, item)));
  await settle();
  expect(batches.map(({ items }) => items)).toEqual([["a", "b", "c"]]);
  batches[0]?.answer();
  expect(await results).toEqual(["done a", "done b", "done c"]);
});

test("items that arrive during a batch are sent together in the next one", async () => {
  const { batcher, batches, sizes, settle } = createBatcher();
  const results = [batcher.submit(0, "a")];
  await settle();
  for (const item of ["b", "c"]) {
    results.push(batcher.submit(0, item));
    await settle();
  }
  expect(batches).toHaveLength(1);
  expect(batcher.depth).toBe(2);
  batches[0]?.answer();
  await settle();
  expect(batches.map(({ items }) => items)).toEqual([["a"], ["b", "c"]]);
  expect(batcher.depth).toBe(0);
  batches[1]?.answer();
  expect(await Promise.all(results)).toEqual(["done a", "done b", "done c"]);
  expect(sizes).toEqual([1, 2]);
});

test("an item that a caller submits as soon as it has a result joins the waiting items", async () => {
  const { batcher, batches, settle } = createBatcher();
  const results = batcher.submit(0, "hold a").then(() => batcher.submit(0, "end a"));
  await settle();
  const waiting = batcher.submit(0, "hold b");
  batches[0]?.answer();
  await settle();
  expect(batches.map(({ items }) => items)).toEqual([["hold a"], ["hold b", "end a"]]);
  batches[1]?.answer();
  expect(await Promise.all([results, waiting])).toEqual(["done end a", "done hold b"]);
});

test("many waiting items are sent before the results of the batch before are delivered", async () => {
  const { batcher, batches, settle } = createBatcher();
  const sentBefore: number[] = [];
  const first = batcher.submit(0, "a").then(() => sentBefore.push(batches.length));
  await settle();
  const items = Array.from({ length: 8 }, (_, i) => `b${i}`);
  const others = Promise.all(items.map((item) => batcher.submit(0, item)));
  batches[0]?.answer();
  await first;
  expect(sentBefore).toEqual([2]);
  expect(batches[1]?.items).toEqual(items);
  batches[1]?.answer();
  expect(await others).toEqual(items.map((item) => `done ${item}`));
});

test("beside other batchers, many waiting items wait for those that callers submit in response to the results", async () => {
  const { batcher, batches, settle } = createBatcher({ hasOthers: () => true });
  const first = batcher.submit(0, "a").then(() => batcher.submit(0, "a again"));
  await settle();
  const items = Array.from({ length: 8 }, (_, i) => `b${i}`);
  const others = Promise.all(items.map((item) => batcher.submit(0, item)));
  batches[0]?.answer();
  await settle();
  expect(batches[1]?.items).toEqual([...items, "a again"]);
  batches[1]?.answer();
  await Promise.all([first, others]);
});

test("the error of a batch is delivered after many waiting items are sent, and they are not affected", async () => {
  const { batcher, batches, settle } = createBatcher();
  const lost = expect(batcher.submit(0, "a")).rejects.toThrow("connection lost");
  await settle();
  const items = Array.from({ length: 8 }, (_, i) => `b${i}`);
  const others = Promise.all(items.map((item) => batcher.submit(0, item)));
  batches[0]?.fail(new Error("connection lost"));
  await lost;
  expect(batches).toHaveLength(2);
  batches[1]?.answer();
  expect(await others).toEqual(items.map((item) => `done ${item}`));
});

test("a batch has at most the maximum of items, in the order of arrival", async () => {
  const { batcher, batches, settle } = createBatcher({ maxBatch: 2 });
  const results = Promise.all(["a", "b", "c", "d", "e"].map((item) => batcher.submit(0, item)));
  for (let i = 0; i < 3; i++) {
    await settle();
    batches[i]?.answer();
  }
  expect(await results).toEqual(["done a", "done b", "done c", "done d", "done e"]);
  expect(batches.map(({ items }) => items)).toEqual([["a", "b"], ["c", "d"], ["e"]]);
});

test("items of one lane are never in two concurrent batches; other lanes do not wait", async () => {
  const { batcher, batches, settle } = createBatcher({ pipelines: 2 });
  const results = [batcher.submit(0, "even 1"), batcher.submit(1, "odd 1")];
  await settle();
  results.push(batcher.submit(2, "even 2"), batcher.submit(0, "even 3"));
  await settle();
  expect(batches.map(({ items }) => items)).toEqual([["even 1"], ["odd 1"]]);
  batches[0]?.answer();
  await settle();
  expect(batches.map(({ items }) => items)).toEqual([["even 1"], ["odd 1"], ["even 2", "even 3"]]);
  batches[1]?.answer();
  batches[2]?.answer();
  expect(await Promise.all(results)).toHaveLength(4);
});

test("an item beyond the limit of waiting items is rejected as overloaded at once", async () => {
  const { batcher, batches, settle } = createBatcher({ maxWaiting: 2 });
  const first = batcher.submit(0, "on its way");
  await settle();
  const waiting = [batcher.submit(0, "a"), batcher.submit(0, "b")];
  await expect(batcher.submit(0, "c")).rejects.toMatchObject({ reason: "overloaded" });
  await expect(batcher.submit(1, "d")).rejects.toBeInstanceOf(DomainError);
  batches[0]?.answer();
  await settle();
  const next = batcher.submit(0, "e");
  batches[1]?.answer();
  await settle();
  batches[2]?.answer();
  expect(await Promise.all([first, ...waiting, next])).toEqual([
    "done on its way",
    "done a",
    "done b",
    "done e",
  ]);
});

test("a batch that fails rejects only the items in it, and the next batch runs", async () => {
  const { batcher, batches, settle } = createBatcher();
  const lost = Promise.allSettled([batcher.submit(0, "a"), batcher.submit(0, "b")]);
  await settle();
  const kept = batcher.submit(0, "c");
  const error = new Error("connection lost");
  batches[0]?.fail(error);
  await settle();
  batches[1]?.answer();
  expect(await lost).toEqual([
    { status: "rejected", reason: error },
    { status: "rejected", reason: error },
  ]);
  expect(await kept).toBe("done c");
});

test("a batcher accepts items after it was idle", async () => {
  const { batcher, batches, settle } = createBatcher();
  for (let i = 0; i < 3; i++) {
    const result = batcher.submit(0, String(i));
    await settle();
    batches[i]?.answer();
    expect(await result).toBe(`done ${i}`);
    await settle();
  }
});

test("batches have a maximum weight, a heavier item is sent alone, and the order is kept", async () => {
  const batches: number[][] = [];
  const batcher = new Batcher<number, number>({
    pipelines: 1,
    maxBatch: 4,
    maxWaiting: 100,
    weight: { of: (item) => item, max: 10 },
    execute: async (items) => {
      batches.push([...items]);
      return items;
    },
  });
  const items = [4, 4, 4, 50, 1, 1, 1, 1, 1];
  expect(await Promise.all(items.map((item) => batcher.submit(0, item)))).toEqual(items);
  expect(batches).toEqual([[4, 4], [4], [50], [1, 1, 1, 1], [1]]);
});
