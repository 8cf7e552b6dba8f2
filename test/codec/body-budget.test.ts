import { expect, test } from "vitest";
import { BodyBudget } from "../../src/codec/body-budget.ts";
import { bodyBudget } from "../../src/server/http/connection-limits.ts";

test("accounts parse large bodies in rotation, one at a time, even after one that fails", async () => {
  const budget = new BodyBudget(bodyBudget);
  const parsed: string[] = [];
  let running = 0;
  const parse = (account: string) =>
    budget.inTurn(account, async () => {
      expect(++running).toBe(1);
      parsed.push(account);
      await Promise.resolve();
      running--;
      if (account === "one") throw new Error("invalid");
    });
  const done = ["many", "many", "many", "one", "two"].map(parse);
  const results = await Promise.allSettled(done);
  expect(parsed).toEqual(["many", "many", "one", "two", "many"]);
  expect(results.filter(({ status }) => status === "rejected")).toHaveLength(1);
});

test("a request that is still being read after its call has ended takes nothing from the budget", () => {
  const budget = new BodyBudget(bodyBudget);
  const share = budget.openShare("one");
  share.reserve(10);
  share.release();
  expect(() => share.reserve(10)).toThrow(/too many large requests/);
  expect(budget.usedBytes).toBe(0);
});

test("the peak is the most that was in use at once since it was taken", () => {
  const budget = new BodyBudget(bodyBudget);
  const [first, second] = [budget.openShare("one"), budget.openShare("two")];
  first.reserve(10);
  second.reserve(20);
  first.release();
  expect([budget.takePeakBytes(), budget.takePeakBytes()]).toEqual([30, 20]);
  second.release();
  expect([budget.takePeakBytes(), budget.takePeakBytes()]).toEqual([20, 0]);
});
