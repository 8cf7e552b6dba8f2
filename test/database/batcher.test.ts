import { setImmediate as nextTurn } from "node:timers/promises";
import { afterEach, expect, test, vi } from "vitest";
import { Batcher } from "../../src/database/driver/batcher.ts";
import { DomainError } from "../../src/domain/errors.ts";

afterEach(() => void vi.useRealTimers());

/** Batches return at once without work. */
const NEAR = { now: () => performance.now(), roundTripMs: 0 };

type Batch = { readonly items: readonly string[]; answer(): void; fail(error: Error): void };

/** A batcher whose batches wait until the test completes them. */
function createBatcher(options: { pipelines?: number; maxBatch?: number; maxWaiting?: number; hasOthers?: () => boolean } = {}) {
  const batches: Batch[] = [];
  const sizes: number[] = [];
  const batcher = new Batcher<string, string>({
    pipelines: 1,
    maxBatch: 100,
    maxWaiting: 100,
    clock: NEAR,
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

test("items that arrive during a batch are sent together in the next one", async () => {
  const { batcher, batches, sizes, settle } = createBatcher();
  const results = [batcher.submit("a")];
  await settle();
  for (const item of ["b", "c"]) {
    results.push(batcher.submit(item));
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
  const results = batcher.submit("hold a").then(() => batcher.submit("end a"));
  await settle();
  const waiting = batcher.submit("hold b");
  batches[0]?.answer();
  await settle();
  expect(batches.map(({ items }) => items)).toEqual([["hold a"], ["hold b", "end a"]]);
  batches[1]?.answer();
  expect(await Promise.all([results, waiting])).toEqual(["done end a", "done hold b"]);
});

test("many waiting items are sent before the results of the batch before are delivered", async () => {
  const { batcher, batches, settle } = createBatcher();
  const sentBefore: number[] = [];
  const first = batcher.submit("a").then(() => sentBefore.push(batches.length));
  await settle();
  const items = Array.from({ length: 8 }, (_, i) => `b${i}`);
  const others = Promise.all(items.map((item) => batcher.submit(item)));
  batches[0]?.answer();
  await first;
  expect(sentBefore).toEqual([2]);
  expect(batches[1]?.items).toEqual(items);
  batches[1]?.answer();
  expect(await others).toEqual(items.map((item) => `done ${item}`));
});

test("the error of a batch is delivered after many waiting items are sent, and they are not affected", async () => {
  const { batcher, batches, settle } = createBatcher();
  const lost = expect(batcher.submit("a")).rejects.toThrow("connection lost");
  await settle();
  const items = Array.from({ length: 8 }, (_, i) => `b${i}`);
  const others = Promise.all(items.map((item) => batcher.submit(item)));
  batches[0]?.fail(new Error("connection lost"));
  await lost;
  expect(batches).toHaveLength(2);
  batches[1]?.answer();
  expect(await others).toEqual(items.map((item) => `done ${item}`));
});

test("a batch has at most the maximum of items, in the order of arrival", async () => {
  const { batcher, batches, settle } = createBatcher({ maxBatch: 2 });
  const results = Promise.all(["a", "b", "c", "d", "e"].map((item) => batcher.submit(item)));
  for (let i = 0; i < 3; i++) {
    await settle();
    batches[i]?.answer();
  }
  expect(await results).toEqual(["done a", "done b", "done c", "done d", "done e"]);
  expect(batches.map(({ items }) => items)).toEqual([["a", "b"], ["c", "d"], ["e"]]);
});

/** A database whose batches take `workMs` besides the round trip. Time passes only when the test says so. */
function createDistantBatcher({ roundTripMs, workMs, pipelines = 8 }: Distance) {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
  const sent: { at: number; items: readonly string[] }[] = [];
  let running = 0;
  let maxRunning = 0;
  const batcher = new Batcher<string, string>({
    pipelines,
    maxBatch: 100,
    maxWaiting: 1_000,
    clock: { now: () => performance.now(), roundTripMs },
    execute: async (items) => {
      sent.push({ at: performance.now(), items });
      maxRunning = Math.max(maxRunning, ++running);
      await new Promise((resolve) => setTimeout(resolve, roundTripMs + workMs));
      running--;
      return items;
    },
  });
  const pass = async (ms: number) => {
    for (let passed = 0; passed < ms; passed++) {
      await vi.advanceTimersByTimeAsync(1);
      for (let i = 0; i < 3; i++) await nextTurn();
    }
  };
  /** One item per millisecond. */
  const load = async (ms: number) => {
    const results = [];
    for (let i = 0; i < ms; i++) {
      results.push(batcher.submit(String(i)));
      await pass(1);
    }
    return results;
  };
  return { batcher, sent, load, pass, maxRunning: () => maxRunning };
}

type Distance = { readonly roundTripMs: number; readonly workMs: number; readonly pipelines?: number };

test("to a distant database, a batch follows the last one when that one's work is over", async () => {
  const { load, pass, sent, maxRunning } = createDistantBatcher({ roundTripMs: 20, workMs: 4 });
  const results = await load(200);
  await pass(30);
  expect(await Promise.all(results)).toEqual(results.map((_, i) => String(i)));
  const late = sent.slice(6);
  const gaps = late.slice(1).map(({ at }, i) => at - (late[i]?.at ?? 0));
  expect(Math.min(...gaps)).toBeGreaterThanOrEqual(4);
  expect(Math.max(...gaps)).toBeLessThanOrEqual(6);
  // 24 ms for each batch, one every 4 ms.
  expect(maxRunning()).toBe(6);
});

test.each([
  { roundTripMs: 0, workMs: 4 },
  { roundTripMs: 3, workMs: 4 },
])("a second batch is not sent while the work takes longer than the round trip: $roundTripMs ms", async (distance) => {
  const { load, maxRunning } = createDistantBatcher(distance);
  await load(100);
  expect(maxRunning()).toBe(1);
});

test("no more batches run at once than there are pipelines", async () => {
  const { load, maxRunning } = createDistantBatcher({ roundTripMs: 40, workMs: 1, pipelines: 3 });
  await load(200);
  expect(maxRunning()).toBe(3);
});

test("an item beyond the limit of waiting items is rejected as overloaded at once", async () => {
  const { batcher, batches, settle } = createBatcher({ maxWaiting: 2 });
  const first = batcher.submit("on its way");
  await settle();
  const waiting = [batcher.submit("a"), batcher.submit("b")];
  await expect(batcher.submit("c")).rejects.toMatchObject({ reason: "overloaded" });
  await expect(batcher.submit("d")).rejects.toBeInstanceOf(DomainError);
  batches[0]?.answer();
  await settle();
  const next = batcher.submit("e");
  batches[1]?.answer();
  await settle();
  batches[2]?.answer();
  expect(await Promise.all([first, ...waiting, next])).toEqual(["done on its way", "done a", "done b", "done e"]);
});

test("a batch that fails rejects only the items in it, and the next batch runs", async () => {
  const { batcher, batches, settle } = createBatcher();
  const lost = Promise.allSettled([batcher.submit("a"), batcher.submit("b")]);
  await settle();
  const kept = batcher.submit("c");
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

test("batches have a maximum weight, a heavier item is sent alone, and the order is kept", async () => {
  const batches: number[][] = [];
  const batcher = new Batcher<number, number>({
    pipelines: 1,
    clock: NEAR,
    maxBatch: 4,
    maxWaiting: 100,
    weight: { of: (item) => item, max: 10 },
    execute: async (items) => {
      batches.push([...items]);
      return items;
    },
  });
  const items = [4, 4, 4, 50, 1, 1, 1, 1, 1];
  expect(await Promise.all(items.map((item) => batcher.submit(item)))).toEqual(items);
  expect(batches).toEqual([[4, 4], [4], [50], [1, 1, 1, 1], [1]]);
});
