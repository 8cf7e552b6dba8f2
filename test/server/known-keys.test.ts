import { expect, test } from "vitest";
import { KnownKeys } from "../../src/server/gate/failed-authentications.ts";

test("a key that is deleted is unknown, even when it was remembered again in the second set", () => {
  const keys = new KnownKeys(2);
  for (const key of ["a", "b", "c"]) keys.remember(key);
  // "a" is in the older set, and now in both.
  keys.remember("a");
  keys.delete("a");
  expect(keys.has("a")).toBe(false);
  expect(["b", "c"].map((key) => keys.has(key))).toEqual([true, true]);
});

test("a key in use outlives unused ones, and at most two sets are kept", () => {
  const keys = new KnownKeys(2);
  for (const key of ["used", "a", "used", "b", "used", "c", "used"]) keys.remember(key);
  expect(["used", "c", "a"].map((key) => keys.has(key))).toEqual([true, true, false]);
});
