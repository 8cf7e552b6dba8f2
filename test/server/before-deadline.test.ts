import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { beforeDeadline } from "../../src/server/serve-call.ts";

beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] }));
afterEach(() => void vi.useRealTimers());

test("work that takes longer than the deadline is an error, and its late failure is not reported", async () => {
  const work = Promise.withResolvers<string>();
  const outcome = beforeDeadline(work.promise, 1_000);
  vi.advanceTimersByTime(1_000);
  await expect(outcome).rejects.toMatchObject({ reason: "deadline_exceeded" });
  work.reject(new Error("late"));
});

test("a deadline that has passed is an error at once", async () => {
  await expect(beforeDeadline(new Promise(() => undefined), 0)).rejects.toMatchObject({ reason: "deadline_exceeded" });
  expect(vi.getTimerCount()).toBe(0);
});

test("no timer is left after the work, however it ends", async () => {
  expect(await beforeDeadline(Promise.resolve("done"), 60_000)).toBe("done");
  await expect(beforeDeadline(Promise.reject(new Error("refused")), 60_000)).rejects.toThrow("refused");
  expect(await beforeDeadline(Promise.resolve("done"), undefined)).toBe("done");
  expect(vi.getTimerCount()).toBe(0);
});
