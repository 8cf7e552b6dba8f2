import { expect, test } from "vitest";
import { type Claim, storeAttempts } from "../../src/store/webhooks.ts";
import { useStore } from "../support/store.ts";

const store = useStore();

test("an endpoint is fast after ten minutes without a slow attempt, and a new one after its first fast attempt", async () => {
  const { owner } = store;
  const queue = { lane: 1, webhook_id: "whk_1" };
  await owner`
    INSERT INTO vx.webhook_queues ${owner({ ...queue, is_of_operators: false, due_at: new Date() })}`;
  const isSlowAfter = async (latencyMs: number) => {
    const claim = { ...queue, claim: 0n, account_id: "acct_1", seq: 1n, attempts: 0 } as Claim;
    const outcome = { status: 204, latencyMs, error: "", answer: "", retryMs: undefined, pauseMs: undefined };
    await storeAttempts(store.database, 0, [{ claim, outcome }]);
    const [row] = await owner`SELECT is_slow FROM vx.webhook_queues WHERE webhook_id = 'whk_1'`;
    return row?.is_slow;
  };
  const pass = (minutes: number) =>
    owner`UPDATE vx.webhook_queues SET slow_at = slow_at - make_interval(mins => ${minutes})`;
  expect(await isSlowAfter(999)).toBe(false);
  expect(await isSlowAfter(1_000)).toBe(true);
  expect(await isSlowAfter(10)).toBe(true);
  await pass(9);
  expect(await isSlowAfter(10)).toBe(true);
  await pass(1);
  expect(await isSlowAfter(10)).toBe(false);
});
