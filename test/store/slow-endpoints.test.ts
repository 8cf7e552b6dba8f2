import { once } from "node:events";
import { expect, test, vi } from "vitest";
import { type Claim, storeAttempts } from "../../src/store/webhooks.ts";
import { Deliverer } from "../../src/webhooks/deliverer.ts";
import type { Endpoint, Sender } from "../../src/webhooks/sender.ts";
import { useOwnStore } from "../support/store.ts";

const store = useOwnStore();

test("an endpoint is fast after ten minutes without a slow attempt, and a new one after its first fast attempt", async () => {
  const { owner } = store;
  const queue = { lane: 1, webhook_id: "whk_1" };
  await owner`
    INSERT INTO vx.webhooks (lane, id, account_id, url, description, types, enabled_at, secret, created_at)
    VALUES (1, 'whk_1', 'acct_1', 'https://example.com', '', '{}', now(), 'whsec_', now())`;
  await owner`
    INSERT INTO vx.webhook_queues ${owner({ ...queue, is_of_operators: false, due_at: new Date() })}`;
  let isHanging: unknown;
  const isSlowAfter = async (latencyMs: number) => {
    const claim = { ...queue, claim: 0n, revision: 0, account_id: "acct_1", seq: 1n, attempts: 0 } as Claim;
    const outcome = { status: 204, latencyMs, error: "", answer: "", retryMs: undefined, pauseMs: undefined };
    await storeAttempts(store.database, 0, [{ claim, outcome }]);
    const [row] = await owner`SELECT is_slow, is_hanging FROM vx.webhook_queues WHERE webhook_id = 'whk_1'`;
    isHanging = row?.is_hanging;
    return row?.is_slow;
  };
  const pass = (minutes: number) =>
    owner`
      UPDATE vx.webhook_queues SET slow_at = slow_at - make_interval(mins => ${minutes}),
        hung_at = hung_at - make_interval(mins => ${minutes})`;
  expect(await isSlowAfter(999)).toBe(false);
  expect(await isSlowAfter(1_000)).toBe(true);
  expect(await isSlowAfter(10)).toBe(true);
  await pass(9);
  expect(await isSlowAfter(10)).toBe(true);
  await pass(1);
  expect(await isSlowAfter(10)).toBe(false);
  expect(isHanging).toBe(false);
  await isSlowAfter(4_999);
  expect(isHanging).toBe(false);
  await isSlowAfter(5_000);
  expect(isHanging).toBe(true);
  await pass(9);
  await isSlowAfter(10);
  expect(isHanging).toBe(true);
  await pass(1);
  await isSlowAfter(10);
  expect(isHanging).toBe(false);
});

test("endpoints that hang leave places for new ones", async () => {
  const { owner, database } = store;
  const due = (ids: readonly string[], isHanging: boolean) =>
    owner.begin(async (session) => {
      for (const [i, id] of ids.entries()) {
        const place = { lane: 2, account_id: id, seq: i + 1 };
        const created_at = new Date(Date.now() - 60_000);
        await session`
          INSERT INTO vx.events ${session({ ...place, id: `evt_${id}`, type: "credit.posted", created_at, data: {} })}`;
        await session`
          INSERT INTO vx.webhooks ${session({ lane: 2, account_id: id, id, url: `http://${id}/`, description: "", types: [], created_at, enabled_at: created_at, secret: "s" })}`;
        await session`
          INSERT INTO vx.deliveries ${session({ ...place, webhook_id: id, event_id: `evt_${id}`, created_at, due_at: created_at })}`;
        await session`
          INSERT INTO vx.webhook_queues ${session({ lane: 2, webhook_id: id, is_of_operators: false, due_at: created_at, is_hanging: isHanging })}`;
      }
    });
  const hanging = Array.from({ length: 20 }, (_, i) => `whk_hanging${i}`);
  const added = Array.from({ length: 5 }, (_, i) => `whk_new${i}`);
  await due(hanging, true);
  const called: string[] = [];
  const sender = {
    send: async ({ url }: Endpoint, _id: string, _body: string, signal: AbortSignal) => {
      called.push(new URL(url).hostname);
      await once(signal, "abort");
      return { status: undefined, latencyMs: 0, error: "stopped", answer: "", retryAfterMs: undefined };
    },
    close: async () => undefined,
  } as unknown as Sender;
  const deliverer = new Deliverer({
    database,
    senders: { operators: sender, customers: sender },
    random: () => 0.5,
    onAttempt: () => undefined,
    onFailure: (_cell, error) => {
      throw error;
    },
  });
  deliverer.start();
  await vi.waitFor(() => expect(called).toHaveLength(4));
  await due(added, false);
  await vi.waitFor(() => expect(called).toHaveLength(9));
  expect(called.filter((id) => hanging.includes(id))).toHaveLength(4);
  expect(called).toEqual(expect.arrayContaining(added));
  await deliverer.stop();
});
