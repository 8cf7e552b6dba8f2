import { setImmediate } from "node:timers/promises";
import { expect, test } from "vitest";
import { nextTurn } from "../../src/domain/next-turn.ts";

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
