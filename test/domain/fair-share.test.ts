import fc from "fast-check";
import { expect, test } from "vitest";
import { FairShare } from "../../src/domain/fairness.ts";

test("a single user can take seven eighths; the rest is reserved for others", () => {
  const limit = new FairShare();
  let taken = 0;
  while (limit.acquire("a", 1, 80)) taken++;
  expect(taken).toBe(70);
  let others = 0;
  while (limit.acquire("b", 1, 80)) others++;
  expect(others).toBe(8);
  expect(limit.acquire("c", 1, 80)).toBe(true);
});

test("a released amount can be taken again", () => {
  const limit = new FairShare();
  expect(limit.acquire("a", 70, 80)).toBe(true);
  expect(limit.acquire("a", 1, 80)).toBe(false);
  limit.release("a", 1);
  expect(limit.acquire("a", 1, 80)).toBe(true);
  expect(limit.inUse).toBe(70);
});

test("without a user, only the total is limited", () => {
  const limit = new FairShare();
  expect(limit.acquire(undefined, 80, 80)).toBe(true);
  expect(limit.acquire(undefined, 1, 80)).toBe(false);
});

test("the limit is never exceeded, and a released amount is available again", () => {
  const step = fc.record({ user: fc.constantFrom("a", "b", "c"), amount: fc.integer({ min: 1, max: 60 }) });
  fc.assert(
    fc.property(fc.array(step), (steps) => {
      const limit = new FairShare();
      const held: { user: string; amount: number }[] = [];
      for (const { user, amount } of steps) {
        if (limit.acquire(user, amount, 100)) held.push({ user, amount });
        expect(limit.inUse).toBeLessThanOrEqual(100);
        if (amount % 3 === 0) for (const one of held.splice(0, 1)) limit.release(one.user, one.amount);
      }
      for (const { user, amount } of held) limit.release(user, amount);
      expect(limit.inUse).toBe(0);
      expect(limit.acquire("d", 87, 100)).toBe(true);
    }),
  );
});
