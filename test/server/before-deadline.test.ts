import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Call } from "../../src/server/call.ts";
import { beforeDeadline, deadline } from "../../src/server/interceptors/deadline.ts";

beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] }));
afterEach(() => void vi.useRealTimers());

const LATE = { reason: "deadline_exceeded" };

/** A call with this deadline, that waits for its admission and then runs. */
function serve(remainingMs: number | undefined, admission: Promise<unknown>) {
  const work = Promise.withResolvers<void>();
  const started = vi.fn();
  const call = { remainingMs: () => remainingMs, stopDeadline: () => undefined } as Call;
  const stage = deadline(new AbortController().signal)(async (call) => {
    await beforeDeadline(call, admission);
    started();
    await work.promise;
  });
  return { outcome: stage(call), started, work };
}

test("a call whose deadline passes before its admission ends, does not start later, and its late failure is not reported", async () => {
  const [admission, refusal] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const [late, failed] = [serve(1_000, admission.promise), serve(1_000, refusal.promise)];
  vi.advanceTimersByTime(1_000);
  await expect(late.outcome).rejects.toMatchObject(LATE);
  await expect(failed.outcome).rejects.toMatchObject(LATE);
  admission.resolve();
  refusal.reject(new Error("late"));
  await new Promise(setImmediate);
  expect(late.started).not.toHaveBeenCalled();
});

test("a deadline that has passed is an error at once", async () => {
  await expect(serve(0, new Promise(() => undefined)).outcome).rejects.toMatchObject(LATE);
  expect(vi.getTimerCount()).toBe(0);
});

test("after the admission, the deadline does not end the call here", async () => {
  const { outcome, work } = serve(1_000, Promise.resolve());
  await new Promise(setImmediate);
  vi.advanceTimersByTime(60_000);
  work.resolve();
  await outcome;
});

test("no timer is left after a call, however it ends", async () => {
  for (const remainingMs of [60_000, undefined]) {
    const done = serve(remainingMs, Promise.resolve());
    done.work.resolve();
    await done.outcome;
    await expect(serve(remainingMs, Promise.reject(new Error("refused"))).outcome).rejects.toThrow("refused");
  }
  expect(vi.getTimerCount()).toBe(0);
});
