import { once } from "node:events";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { TestSlots } from "../../src/webhooks/test-slots.ts";

// Only timers are simulated.
beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] }));
afterEach(() => void vi.useRealTimers());

test("tests that wait get slots in turn, each from the oldest test that had its share of two seconds", async () => {
  const slots = new TestSlots();
  const [started, ended]: [string[], string[]] = [[], []];
  const start = (account: string) =>
    slots.run(account, async (signal) => {
      started.push(account);
      await once(signal, "abort");
      ended.push(account);
    });
  const first = Array.from({ length: 16 }, (_, i) => `a${i}`);
  const others = Array.from({ length: 240 }, (_, i) => `b${i}`);
  const tests = [...first, ...others].map(start);
  expect(started).toEqual(first);
  await expect(start("c")).rejects.toMatchObject({ reason: "overloaded" });
  await expect(start("b0")).rejects.toMatchObject({ reason: "overloaded" });
  await vi.advanceTimersByTimeAsync(1_999);
  expect(ended).toEqual([]);
  await vi.advanceTimersByTimeAsync(1);
  expect(ended).toEqual(first);
  expect(started).toEqual([...first, ...others.slice(0, 16)]);
  // The last sixteen keep their slots, because no test waits for them.
  await vi.advanceTimersByTimeAsync(60_000);
  expect(started).toEqual([...first, ...others]);
  expect(ended).toEqual([...first, ...others.slice(0, -16)]);
  void start("c");
  await Promise.all(tests.slice(0, -15));
  expect(started.at(-1)).toBe("c");
  expect(ended.at(-1)).toBe(others.at(-16));
  expect(slots.running).toBe(16);
});

test("a test that waits ends one other test, however many had their share", async () => {
  const slots = new TestSlots();
  const ended: string[] = [];
  const start = (account: string) =>
    slots.run(account, async (signal) => {
      await once(signal, "abort");
      ended.push(`${account}: ${signal.reason.message}`);
    });
  for (let i = 0; i < 17; i++) void start(`a${i}`);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(ended).toEqual(["a0: The endpoint did not answer within 2 s, and tests of other accounts were waiting."]);
  expect(slots.running).toBe(16);
});
