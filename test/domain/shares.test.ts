import fc from "fast-check";
import { expect, test } from "vitest";
import { Shares } from "../../src/domain/shares.ts";

test("who is alone gets seven eighths, and leaves the rest for whoever comes", () => {
  const shares = new Shares();
  let taken = 0;
  while (shares.take("a", 1, 80)) taken++;
  expect(taken).toBe(70);
  let others = 0;
  while (shares.take("b", 1, 80)) others++;
  expect(others).toBe(8);
  expect(shares.take("c", 1, 80)).toBe(true);
});

test("what was given back can be taken again", () => {
  const shares = new Shares();
  expect(shares.take("a", 70, 80)).toBe(true);
  expect(shares.take("a", 1, 80)).toBe(false);
  shares.give("a", 1);
  expect(shares.take("a", 1, 80)).toBe(true);
  expect(shares.taken).toBe(70);
});

test("someone without a name is bounded by the room alone", () => {
  const shares = new Shares();
  expect(shares.take(undefined, 80, 80)).toBe(true);
  expect(shares.take(undefined, 1, 80)).toBe(false);
});

test("whatever is taken and given, the room is never exceeded and nothing is left behind", () => {
  const step = fc.record({ who: fc.constantFrom("a", "b", "c"), amount: fc.integer({ min: 1, max: 60 }) });
  fc.assert(
    fc.property(fc.array(step), (steps) => {
      const shares = new Shares();
      const held: { who: string; amount: number }[] = [];
      for (const { who, amount } of steps) {
        if (shares.take(who, amount, 100)) held.push({ who, amount });
        expect(shares.taken).toBeLessThanOrEqual(100);
        if (amount % 3 === 0) for (const one of held.splice(0, 1)) shares.give(one.who, one.amount);
      }
      for (const { who, amount } of held) shares.give(who, amount);
      expect(shares.taken).toBe(0);
      expect(shares.take("d", 87, 100)).toBe(true);
    }),
  );
});
