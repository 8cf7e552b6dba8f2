import fc from "fast-check";
import { expect, test } from "vitest";
import { FailedAuthentications } from "../../src/gate/failed-authentications.ts";

const MINUTE = 60_000;

function failuresAt(limit: number, start = 1_000 * MINUTE) {
  const clock = { now: start };
  return { clock, failures: new FailedAuthentications(limit, () => clock.now) };
}

test("an address is looked at until it has failed as often as it may in one minute", () => {
  const { failures } = failuresAt(3);
  for (let i = 0; i < 3; i++) {
    expect(failures.blockedSeconds("1.2.3.4", "any")).toBe(0);
    failures.add("1.2.3.4");
  }
  expect(failures.blockedSeconds("1.2.3.4", "any")).toBe(60);
});

test("the wait ends with the minute: 1 to 60 seconds", () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: MINUTE - 1 }), (offset) => {
      const { clock, failures } = failuresAt(1);
      clock.now += offset;
      failures.add("1.2.3.4");
      const seconds = failures.blockedSeconds("1.2.3.4", "any");
      expect(seconds).toBeGreaterThanOrEqual(1);
      expect(seconds).toBeLessThanOrEqual(60);
      clock.now += seconds * 1_000;
      expect(failures.blockedSeconds("1.2.3.4", "any")).toBe(0);
    }),
  );
});

test("the last millisecond of the minute still counts, the next one does not", () => {
  const { clock, failures } = failuresAt(1);
  failures.add("1.2.3.4");
  clock.now += MINUTE - 1;
  expect(failures.blockedSeconds("1.2.3.4", "any")).toBe(1);
  clock.now += 1;
  expect(failures.blockedSeconds("1.2.3.4", "any")).toBe(0);
});

test("addresses are counted apart", () => {
  const { failures } = failuresAt(1);
  failures.add("1.2.3.4");
  expect(failures.blockedSeconds("1.2.3.4", "any")).toBeGreaterThan(0);
  expect(failures.blockedSeconds("1.2.3.5", "any")).toBe(0);
});

test("a limit of 0 is no limit", () => {
  const { failures } = failuresAt(0);
  for (let i = 0; i < 1_000; i++) failures.add("1.2.3.4");
  expect(failures.blockedSeconds("1.2.3.4", "any")).toBe(0);
});

test("very many addresses take bounded memory, and those that are blocked stay so", () => {
  const { failures } = failuresAt(1);
  failures.add("first");
  for (let i = 0; i < 100_000; i++) failures.add(`address ${i}`);
  expect(failures.blockedSeconds("first", "any")).toBeGreaterThan(0);
  expect(failures.blockedSeconds("address 99998", "any")).toBeGreaterThan(0);
  // Beyond the bound an address is not remembered.
  expect(failures.blockedSeconds("address 99999", "any")).toBe(0);
});

test("a key that was admitted before is looked at, however many unknown ones come from its address", () => {
  const { failures } = failuresAt(1);
  failures.remember("good");
  failures.add("1.2.3.4");
  expect(failures.blockedSeconds("1.2.3.4", "good")).toBe(0);
  expect(failures.blockedSeconds("1.2.3.4", "other")).toBeGreaterThan(0);
});

test("of very many keys the first ones are forgotten", () => {
  const { failures } = failuresAt(1);
  for (let i = 0; i <= 20_000; i++) failures.remember(`key ${i}`);
  failures.add("1.2.3.4");
  expect(failures.blockedSeconds("1.2.3.4", "key 0")).toBeGreaterThan(0);
  expect(failures.blockedSeconds("1.2.3.4", "key 20000")).toBe(0);
});
