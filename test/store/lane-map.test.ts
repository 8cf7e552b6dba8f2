import { expect, test } from "vitest";
import { LaneMap } from "../../src/cells/cell-directory.ts";

test("a lane belongs to the cell whose claim has the highest epoch", () => {
  const map = new LaneMap([[1, 2], [3]]);
  expect([1, 2, 3].map((lane) => map.ownerOf(lane))).toEqual([0, 0, 1]);
  map.record(0, new Map([[1, 4n]]));
  map.record(1, new Map([[1, 3n]]));
  expect([1, 2, 3].map((lane) => map.ownerOf(lane))).toEqual([0, undefined, undefined]);
  map.record(1, new Map([[1, 5n]]));
  expect(map.ownerOf(1)).toBe(1);
  expect(map.unowned.length).toBe(1_023);
});

test("a lane that two cells claim with the same epoch has no owner", () => {
  const map = new LaneMap([[], [], []]);
  for (const cell of [0, 1]) map.record(cell, new Map([[7, 2n]]));
  expect(map.ownerOf(7)).toBeUndefined();
  map.record(2, new Map([[7, 1n]]));
  expect(map.ownerOf(7)).toBeUndefined();
  map.record(2, new Map([[7, 3n]]));
  expect(map.ownerOf(7)).toBe(2);
});
