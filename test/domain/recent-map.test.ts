import { expect, test } from "vitest";
import { RecentMap } from "../../src/domain/recent-map.ts";

test("a key that is deleted is unknown, even when it was set again in the younger half", () => {
  const map = new RecentMap<number>(2);
  for (const key of ["a", "b", "c"]) map.set(key, 1);
  // "a" is in the older half, and now in both.
  map.set("a", 2);
  expect(map.get("a")).toBe(2);
  map.delete("a");
  expect(["a", "b", "c"].map((key) => map.get(key))).toEqual([undefined, 1, 1]);
});

test("a key in use outlives unused ones, and at most two halves are kept", () => {
  const map = new RecentMap<number>(2);
  for (const key of ["used", "a", "used", "b", "used", "c", "used"]) map.set(key, 1);
  expect(["used", "c", "a"].map((key) => map.get(key))).toEqual([1, 1, undefined]);
});
