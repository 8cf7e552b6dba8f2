import fc from "fast-check";
import { expect, test } from "vitest";
import { FailedAuthentications, RecentMap } from "../../src/server/credentials/failed-authentications.ts";

const MINUTE = 60_000;

function failuresAt(limit: number, start = 1_000 * MINUTE) {
  const clock = { now: start };
  return { clock, failures: new FailedAuthentications(limit, () => clock.now) };
}

test("keys from an address are looked up until the allowed number of failures in a minute, which no other address counts", () => {
  const { failures } = failuresAt(3);
  for (let i = 0; i < 3; i++) {
    expect(failures.blockedSeconds("1.2.3.4", "any")).toBe(0);
    failures.addFailure("1.2.3.4", "unknown");
  }
  expect(failures.blockedSeconds("1.2.3.4", "any")).toBe(60);
  expect(failures.blockedSeconds("1.2.3.5", "any")).toBe(0);
});

test("the wait ends with the minute, after 1 to 60 seconds", () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: MINUTE - 1 }), (offset) => {
      const { clock, failures } = failuresAt(1);
      clock.now += offset;
      failures.addFailure("1.2.3.4", "unknown");
      expect(failures.blockedSeconds("1.2.3.4", "any")).toBe(Math.ceil((MINUTE - offset) / 1_000));
      clock.now += MINUTE - offset - 1;
      expect(failures.blockedSeconds("1.2.3.4", "any")).toBe(1);
      clock.now += 1;
      expect(failures.blockedSeconds("1.2.3.4", "any")).toBe(0);
    }),
  );
});

test("a limit of 0 means no limit", () => {
  const { failures } = failuresAt(0);
  for (let i = 0; i < 1_000; i++) failures.addFailure("1.2.3.4", "unknown");
  expect(failures.blockedSeconds("1.2.3.4", "any")).toBe(0);
});

test("memory for addresses is bounded, and blocked addresses stay blocked", () => {
  const { failures } = failuresAt(1);
  failures.addFailure("first", "unknown");
  for (let i = 0; i < 100_000; i++) failures.addFailure(`address ${i}`, "unknown");
  expect(failures.blockedSeconds("first", "any")).toBeGreaterThan(0);
  expect(failures.blockedSeconds("address 99998", "any")).toBeGreaterThan(0);
  // Addresses beyond the bound are not counted.
  expect(failures.blockedSeconds("address 99999", "any")).toBe(0);
});

test("a known valid key is looked up regardless of failures from its address", () => {
  const { failures } = failuresAt(1);
  failures.addValid("good");
  for (let i = 0; i < 10; i++) failures.addFailure("1.2.3.4", `unknown ${i}`);
  expect(failures.blockedSeconds("1.2.3.4", "good")).toBe(0);
  expect(failures.blockedSeconds("1.2.3.4", "other")).toBeGreaterThan(0);
});

test("a known valid key that fails later is blocked like any other", () => {
  const { failures } = failuresAt(2);
  failures.addValid("revoked later");
  failures.addFailure("1.2.3.4", "revoked later");
  expect(failures.blockedSeconds("1.2.3.4", "revoked later")).toBe(0);
  failures.addFailure("1.2.3.4", "revoked later");
  expect(failures.blockedSeconds("1.2.3.4", "revoked later")).toBeGreaterThan(0);
});

test("memory for valid keys is bounded, and keys in use are kept", () => {
  const { failures } = failuresAt(1);
  failures.addFailure("1.2.3.4", "unknown");
  failures.addValid("not used again");
  failures.addValid("in use");
  let blocked = 0;
  for (let i = 0; i < 200_000; i++) {
    failures.addValid(`key ${i}`);
    if (failures.blockedSeconds("1.2.3.4", "in use") > 0) blocked++;
    failures.addValid("in use");
  }
  expect(blocked).toBe(0);
  expect(failures.blockedSeconds("1.2.3.4", "key 199999")).toBe(0);
  expect(failures.blockedSeconds("1.2.3.4", "key 99000")).toBeGreaterThan(0);
  expect(failures.blockedSeconds("1.2.3.4", "not used again")).toBeGreaterThan(0);
});

test("all addresses of an IPv6 network of 64 bits count together", () => {
  const { failures } = failuresAt(2);
  failures.addFailure("2001:db8:0:1::1", "unknown");
  failures.addFailure("2001:db8:0:1:a:b:c:d", "unknown");
  expect(failures.blockedSeconds("2001:db8:0:1::2", "any")).toBeGreaterThan(0);
  expect(failures.blockedSeconds("2001:db8:0:2::1", "any")).toBe(0);
});

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
