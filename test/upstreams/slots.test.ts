import { afterEach, expect, test, vi } from "vitest";
import { Slots } from "../../src/upstreams/runner/guarded-upstream.ts";
import { NEVER } from "./support.ts";

const OPTIONS = { maxRunning: 16, maxWaiting: 80, maxWaitMs: 60_000 };

afterEach(() => void vi.useRealTimers());

/** Acquires a slot for the account, and records the account when it has one. */
async function take(slots: Slots, accountId: string, taken: string[]): Promise<void> {
  if (await slots.acquire(accountId, NEVER)) taken.push(accountId);
}

test("waiting accounts get slots in turn", async () => {
  const slots = new Slots(OPTIONS);
  const taken: string[] = [];
  const all = Array.from({ length: 14 }, () => take(slots, "a", taken));
  all.push(take(slots, "b", taken));
  await Promise.all(all);
  for (const id of ["a", "a", "a", "c", "c", "d"]) all.push(take(slots, id, taken));
  expect([slots.running, slots.waiting]).toEqual([15, 6]);
  taken.length = 0;
  for (let released = 0; released < 7; released++) {
    slots.release("a");
    await Promise.resolve();
  }
  await Promise.all(all);
  // "a" has used up its share until it releases some slots.
  expect(taken).toEqual(["c", "d", "c", "a", "a", "a"]);
  expect([slots.running, slots.waiting]).toEqual([14, 0]);
});

test("a release grants slots to every account whose share has grown", async () => {
  const slots = new Slots(OPTIONS);
  const taken: string[] = [];
  const hold = (id: string, count: number) => Array.from({ length: count }, () => take(slots, id, taken));
  // Alone, "a" gets 14 of 16; beside one slot of "b", it gets 13.
  await Promise.all([...hold("b", 1), ...hold("a", 13)]);
  const waiting = take(slots, "a", taken);
  expect([slots.running, slots.waiting]).toEqual([14, 1]);
  slots.release("b");
  await waiting;
  expect([slots.running, slots.waiting]).toEqual([14, 0]);
});

test("a call that was cancelled before does not wait for a slot", async () => {
  const slots = new Slots({ ...OPTIONS, maxRunning: 2 });
  const reason = new Error("cancelled");
  expect(slots.acquire("a", NEVER)).toBe(true);
  expect(() => slots.acquire("a", AbortSignal.abort(reason))).toThrow(reason);
  expect([slots.running, slots.waiting]).toEqual([1, 0]);
});

test("the time limit of a wait ends with the wait", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  const slots = new Slots({ ...OPTIONS, maxRunning: 2 });
  const leaving = new AbortController();
  expect(slots.acquire("a", NEVER)).toBe(true);
  const granted = slots.acquire("a", NEVER);
  const left = slots.acquire("a", leaving.signal);
  expect([slots.waiting, vi.getTimerCount()]).toEqual([2, 2]);
  slots.release("a");
  expect(await granted).toBe(true);
  leaving.abort(new Error("gone"));
  await expect(left).rejects.toBe(leaving.signal.reason);
  expect([slots.waiting, vi.getTimerCount()]).toEqual([0, 0]);
  const late = slots.acquire("a", NEVER);
  vi.advanceTimersByTime(OPTIONS.maxWaitMs);
  expect(await late).toBe(false);
  expect([slots.running, slots.waiting, vi.getTimerCount()]).toEqual([1, 0, 0]);
});
