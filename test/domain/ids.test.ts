import fc from "fast-check";
import { expect, test } from "vitest";
import { typeIds } from "../../src/domain/ids.ts";
import { LANE_COUNT, laneOfId } from "../../src/domain/lane.ts";

test("ids sort by the time they were made at, also within a millisecond", () => {
  for (const draw of [typeIds.account, typeIds.entry, () => typeIds.key(5)]) {
    const ids = Array.from({ length: 500 }, draw);
    expect(ids.toSorted()).toEqual(ids);
    expect(new Set(ids).size).toBe(ids.length);
  }
});

test("ids say what they are of", () => {
  expect(typeIds.account()).toMatch(/^acct_[0-9a-z]{26}$/);
  expect(typeIds.key(0)).toMatch(/^key_[0-9a-z]{26}$/);
  expect(typeIds.entry()).toMatch(/^led_[0-9a-z]{26}$/);
  expect(typeIds.request()).toMatch(/^req_[0-9a-f]{32}$/);
});

test("the id of a key falls into the lane of its account", () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: LANE_COUNT - 1 }), (lane) => {
      expect(laneOfId(typeIds.key(lane))).toBe(lane);
    }),
  );
});
