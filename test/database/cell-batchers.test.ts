import { setImmediate as nextTurn } from "node:timers/promises";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { CellBatchers, CellTurns } from "../../src/database/driver/batcher.ts";
import type { Cells } from "../../src/database/driver/cells.ts";

// On a busy machine, the turns of the event loop in which nothing may be sent can take longer than the maximum wait of 20 ms.
beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] }));
afterEach(() => void vi.useRealTimers());

type Batch = { readonly cell: number; readonly items: readonly string[]; answer(): void; fail(): void };

/** Batches return at once without work. */
const near = { now: () => performance.now(), roundTripMs: 0 };

/** Even lanes belong to the first cell, odd lanes to the second. The batches wait until the test completes them. */
function createBatchers(turns?: CellTurns) {
  const batches: Batch[] = [];
  const route = <Result>(lane: number, send: (cell: number) => Promise<Result>) => send(lane % 2);
  const cells = { all: [{}, {}], route } as unknown as Cells;
  const batchers = new CellBatchers<string, string>(cells, {
    pipelines: 1,
    maxBatch: 100,
    maxWaiting: 100,
    clocks: [near, near],
    turns,
    execute: (_, items, cell) => {
      const { promise, resolve, reject } = Promise.withResolvers<readonly string[]>();
      batches.push({ cell, items, answer: () => resolve(items), fail: () => reject(new Error("lost")) });
      return promise;
    },
  });
  const ofFirstCell = () => batches.filter(({ cell }) => cell === 0);
  const itemsOfFirstCell = () => ofFirstCell().map(({ items }) => items);
  return { batchers, ofFirstCell, itemsOfFirstCell };
}

async function settle(): Promise<void> {
  for (let i = 0; i < 4; i++) await nextTurn();
}

const ITEMS = Array.from({ length: 8 }, (_, i) => `b${i}`);

test.each([
  { other: "is idle", hasOther: false, next: ITEMS },
  { other: "is busy", hasOther: true, next: [...ITEMS, "a again"] },
])("while the other cell $other, the next batch of a cell is $next", async ({ hasOther, next }) => {
  const { batchers, ofFirstCell, itemsOfFirstCell } = createBatchers();
  void batchers.submit(0, "a").then(() => batchers.submit(0, "a again"));
  if (hasOther) void batchers.submit(1, "other");
  await settle();
  for (const item of ITEMS) void batchers.submit(0, item);
  ofFirstCell()[0]?.answer();
  await settle();
  expect(itemsOfFirstCell()[1]).toEqual(next);
});

/** Admission and billing. A batch of billing in the second cell never ends, so that cell stays busy. */
async function createTwo({ hasOther = true } = {}) {
  const turns = new CellTurns();
  const [admission, billing] = [createBatchers(turns), createBatchers(turns)];
  if (hasOther) void billing.batchers.submit(1, "other");
  await settle();
  return { admission, billing };
}

test("while the other cell is busy, items of billing gather until admission of their cell ends", async () => {
  const { admission, billing } = await createTwo();
  void admission.batchers.submit(0, "admit");
  await settle();
  for (const item of ["hold a", "hold b"]) {
    void billing.batchers.submit(0, item);
    await settle();
  }
  expect(billing.itemsOfFirstCell()).toEqual([]);
  admission.ofFirstCell()[0]?.answer();
  await settle();
  expect(billing.itemsOfFirstCell()).toEqual([["hold a", "hold b"]]);
});

test("the batch that waited includes the items that callers of the other batcher submit in response", async () => {
  const { admission, billing } = await createTwo();
  void admission.batchers.submit(0, "admit").then(() => billing.batchers.submit(0, "hold b"));
  await settle();
  void billing.batchers.submit(0, "hold a");
  await settle();
  admission.ofFirstCell()[0]?.answer();
  await settle();
  expect(billing.itemsOfFirstCell()).toEqual([["hold a", "hold b"]]);
});

test("while the other cell is idle, admission and billing of a cell do not wait for each other", async () => {
  const { admission, billing } = await createTwo({ hasOther: false });
  void admission.batchers.submit(0, "admit");
  await settle();
  void billing.batchers.submit(0, "hold");
  await settle();
  expect(admission.itemsOfFirstCell()).toEqual([["admit"]]);
  expect(billing.itemsOfFirstCell()).toEqual([["hold"]]);
});

test("billing waits until admission of its cell has no items", async () => {
  const { admission, billing } = await createTwo();
  const complete = async (batch: Batch | undefined) => {
    batch?.answer();
    await settle();
  };
  void admission.batchers.submit(0, "admit a");
  await settle();
  void billing.batchers.submit(0, "hold");
  void admission.batchers.submit(2, "admit b");
  await complete(admission.ofFirstCell()[0]);
  expect([admission.itemsOfFirstCell(), billing.itemsOfFirstCell()]).toEqual([[["admit a"], ["admit b"]], []]);
  await complete(admission.ofFirstCell()[1]);
  expect(billing.itemsOfFirstCell()).toEqual([["hold"]]);
});

test("a batch that fails ends the wait of the other batcher", async () => {
  const { admission, billing } = await createTwo();
  const lost = expect(admission.batchers.submit(0, "admit")).rejects.toThrow("lost");
  await settle();
  void billing.batchers.submit(0, "hold");
  await settle();
  admission.ofFirstCell()[0]?.fail();
  await lost;
  await settle();
  expect(billing.itemsOfFirstCell()).toEqual([["hold"]]);
});

test("a statement that does not end delays a batch of the other batcher by 20 ms", async () => {
  const { admission, billing } = await createTwo();
  void billing.batchers.submit(0, "stuck");
  await settle();
  for (let i = 0; i < 2; i++) {
    void admission.batchers.submit(0, `admit ${i}`);
    await settle();
    vi.advanceTimersByTime(19);
    await settle();
    expect(admission.ofFirstCell()).toHaveLength(i);
    vi.advanceTimersByTime(1);
    await settle();
    expect(admission.ofFirstCell()).toHaveLength(i + 1);
    admission.ofFirstCell()[i]?.answer();
    await settle();
  }
});
