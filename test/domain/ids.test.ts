import fc from "fast-check";
import { expect, test } from "vitest";
import { createIds, lowestIdAt, millisecondsOfId, monthOfId, secondsOfId } from "../../src/domain/ids.ts";
import { LANE_COUNT, laneOfId } from "../../src/domain/lane.ts";
import { typeIds } from "../support/type-ids.ts";

const BASE32 = "0123456789abcdefghjkmnpqrstvwxyz";

test("ids sort by creation time, also within a millisecond", () => {
  for (const draw of [typeIds.account, () => typeIds.entry(1_023), () => typeIds.key(5)]) {
    const ids = Array.from({ length: 500 }, draw);
    expect(ids.toSorted()).toEqual(ids);
    expect(new Set(ids).size).toBe(ids.length);
  }
});

test("ids are UUIDs of version 7 in base 32", () => {
  for (let i = 0; i < 500; i++) {
    const before = Date.now();
    const [, suffix = ""] = typeIds.account().split("_");
    let bits = 0n;
    for (const digit of suffix) bits = bits * 32n + BigInt(BASE32.indexOf(digit));
    const uuid = bits.toString(16).padStart(32, "0");
    expect(uuid).toMatch(/^.{12}7.{3}[89ab].{15}$/);
    expect(Number.parseInt(uuid.slice(0, 12), 16)).toBeGreaterThanOrEqual(before);
  }
});

test("ids have the time of the cell of their lane, and keep their order while its clock goes back a little", () => {
  const times = [1_000_000_000_000, 2_000_000_000_000];
  const ids = createIds(
    (cell) => times[cell] as number,
    (lane) => (lane < 512 ? 0 : 1),
  );
  expect([ids.account(), ids.entry(1), ids.entry(600)].map(secondsOfId)).toEqual([1_000_000_000, 1_000_000_000, 2_000_000_000]);
  times[1] = 1_999_999_990_000;
  const second = ids.entry(600);
  expect(secondsOfId(second)).toBe(2_000_000_000);
  expect(ids.entry(600) > second).toBe(true);
  // A clock that was wrong is set right.
  times[1] = 1_900_000_000_000;
  expect(secondsOfId(ids.entry(600))).toBe(1_900_000_000);
});

test("accounts are created in usable lanes, each of which is drawn", () => {
  const drawFrom = (lanes: readonly number[]) => {
    const ids = createIds(
      Date.now,
      () => 0,
      () => lanes,
    );
    return new Set(Array.from({ length: 300 }, () => laneOfId(ids.account())));
  };
  expect([...drawFrom([7, 600, 1_023])].sort((a, b) => a - b)).toEqual([7, 600, 1_023]);
  // While no cell can be used, the call fails as every other.
  expect(drawFrom([]).size).toBeGreaterThan(100);
});

test("ids have the prefix of their type", () => {
  expect(typeIds.account()).toMatch(/^acct_[0-9a-z]{26}$/);
  expect(typeIds.key(0)).toMatch(/^key_[0-9a-z]{26}$/);
  expect(typeIds.entry(0)).toMatch(/^led_[0-9a-z]{26}$/);
  expect(typeIds.request()).toMatch(/^req_[0-9a-f]{32}$/);
});

test("a month starts at midnight UTC", () => {
  const idAt = (time: string) => `led_${fromUnixMs(Date.parse(time))}${"0".repeat(16)}`;
  expect(monthOfId(idAt("1970-01-01T00:00:00Z"))).toBe(0);
  expect(monthOfId(idAt("2026-11-30T23:59:59.999Z"))).toBe(56 * 12 + 10);
  expect(monthOfId(idAt("2026-12-01T00:00:00Z"))).toBe(56 * 12 + 11);
});

test("the id of a key has the lane of its account", () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: LANE_COUNT - 1 }), (lane) => {
      expect(laneOfId(typeIds.key(lane))).toBe(lane);
    }),
  );
});

/** Ten characters of base 32, the most significant first. */
function fromUnixMs(ms: number): string {
  const characters = Array.from({ length: 10 }, (_, i) => Math.floor(ms / 32 ** (9 - i)) % 32);
  return characters.map((at) => BASE32.charAt(at)).join("");
}

test("ids of a time sort after the lowest id of that time", () => {
  const now = Date.now();
  const id = createIds(() => now).failure(5);
  expect(lowestIdAt("fail", now) < id).toBe(true);
  expect(id < lowestIdAt("fail", now + 1)).toBe(true);
  expect(millisecondsOfId(lowestIdAt("fail", now))).toBe(now);
});
