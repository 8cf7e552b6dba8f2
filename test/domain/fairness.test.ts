import { setImmediate } from "node:timers/promises";
import { expect, test } from "vitest";
import { inTurnsOf, nextTurn, turnToEnd } from "../../src/domain/fairness.ts";

test("a turn of the event loop has one step of all calls together, in order of arrival", async () => {
  const steps: { caller: string; turn: number }[] = [];
  let turn = 0;
  const work = async (caller: string) => {
    for (let step = 0; step < 3; step++) {
      await nextTurn();
      steps.push({ caller, turn });
    }
  };
  let isOver = false;
  const all = Promise.all(["a", "b", "c"].map(work)).finally(() => {
    isOver = true;
  });
  for (; !isOver; turn++) await setImmediate();
  await all;
  expect(steps.map(({ caller }) => caller).join("")).toBe("abcabcabc");
  expect(new Set(steps.map((step) => step.turn)).size).toBe(9);
});

test("many calls of an account delay those of another one no longer than one does", async () => {
  const steps: string[] = [];
  const work = async (account: string) => {
    for (let step = 0; step < 3; step++) {
      await nextTurn();
      steps.push(account);
    }
  };
  const callOf = (account: string) => inTurnsOf(account, () => work(account));
  await Promise.all([...Array.from({ length: 100 }, () => callOf("many")), callOf("one"), callOf("two")]);
  expect(steps.slice(0, 9).join(" ")).toBe("many one two many one two many one two");
  expect(steps).toHaveLength(306);
});

test("the turns of a call stay those of its account after other calls have run", async () => {
  const steps: string[] = [];
  const work = async (account: string) => {
    await setImmediate();
    for (let step = 0; step < 2; step++) {
      await nextTurn();
      steps.push(account);
    }
  };
  await Promise.all(["a", "a", "b"].map((account) => inTurnsOf(account, () => work(account))));
  expect(steps.join("")).toBe("ababaa");
});

test("a turn has a few ends of connections and calls, and addresses take turns", async () => {
  const ends: { address: string; turn: number }[] = [];
  let turn = 0;
  const end = async (address: string) => {
    await turnToEnd(address);
    ends.push({ address, turn });
  };
  const addresses = [...Array.from({ length: 100 }, () => "many"), "one"];
  let isOver = false;
  const all = Promise.all(addresses.map(end)).finally(() => {
    isOver = true;
  });
  for (; !isOver; turn++) await setImmediate();
  await all;
  const perTurn = Map.groupBy(ends, (one) => one.turn);
  expect(Math.max(...[...perTurn.values()].map(({ length }) => length))).toBe(4);
  expect(ends.findIndex(({ address }) => address === "one")).toBe(1);
});
