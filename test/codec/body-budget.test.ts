import { expect, test } from "vitest";
import { BodyBudget } from "../../src/codec/body-budget.ts";
import { bodyBudget } from "../../src/server/listener-limits.ts";

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
