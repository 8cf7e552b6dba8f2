import { expect, test } from "vitest";
import { Slots } from "../../src/upstreams/runner/slots.ts";
import { NEVER } from "./support.ts";

const OPTIONS = { running: 16, waiting: 80, waitMs: 60_000 };

/** Takes a slot for the account, now or later, and writes the account down when it has one. */
async function take(slots: Slots, accountId: string, taken: string[]): Promise<void> {
  if (await slots.acquire(accountId, NEVER)) taken.push(accountId);
}

test("accounts that wait take turns", async () => {
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
  // The share of "a" is used up until it has released some.
  expect(taken).toEqual(["c", "d", "c", "a", "a", "a"]);
  expect([slots.running, slots.waiting]).toEqual([14, 0]);
});

test("a release lets every account enter whose share has grown", async () => {
  const slots = new Slots(OPTIONS);
  const taken: string[] = [];
  const hold = (id: string, count: number) => Array.from({ length: count }, () => take(slots, id, taken));
  // Alone a may have 14 of 16; the one of b leaves it 13.
  await Promise.all([...hold("b", 1), ...hold("a", 13)]);
  const waiting = take(slots, "a", taken);
  expect([slots.running, slots.waiting]).toEqual([14, 1]);
  slots.release("b");
  await waiting;
  expect([slots.running, slots.waiting]).toEqual([14, 0]);
});
