import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, test } from "vitest";
import { CellBatchers } from "../../src/store/driver/cell-batchers.ts";
import type { Cells } from "../../src/store/driver/cells.ts";

/** Even lanes belong to the first cell, odd lanes to the second. The batches wait until the test completes them. */
function createBatchers() {
  const batches: { readonly cell: number; readonly items: readonly string[]; answer(): void }[] = [];
  const route = <Result>(lane: number, send: (cell: number) => Promise<Result>) => send(lane % 2);
  const cells = { all: [{}, {}], route } as unknown as Cells;
  const batchers = new CellBatchers<string, string>(cells, {
    pipelines: 1,
    maxBatch: 100,
    maxWaiting: 100,
    execute: (_, items, cell) => {
      const { promise, resolve } = Promise.withResolvers<readonly string[]>();
      batches.push({ cell, items, answer: () => resolve(items) });
      return promise;
    },
  });
  const settle = async () => {
    for (let i = 0; i < 3; i++) await nextTurn();
  };
  return { batchers, batches, settle };
}

const ITEMS = Array.from({ length: 8 }, (_, i) => `b${i}`);

test.each([
  { other: "is idle", hasOther: false, next: ITEMS },
  { other: "is busy", hasOther: true, next: [...ITEMS, "a again"] },
])("while the other cell $other, the next batch of a cell is $next", async ({ hasOther, next }) => {
  const { batchers, batches, settle } = createBatchers();
  void batchers.submit(0, "a").then(() => batchers.submit(0, "a again"));
  if (hasOther) void batchers.submit(1, "other");
  await settle();
  for (const item of ITEMS) void batchers.submit(0, item);
  batches.find(({ cell }) => cell === 0)?.answer();
  await settle();
  expect(batches.filter(({ cell }) => cell === 0)[1]?.items).toEqual(next);
});
