import { expect, test, vi } from "vitest";
import { useStore } from "../support/store.ts";

const store = useStore();

test("a webhook that is resumed while a claim still finds it paused is due at once", async () => {
  const { owner, database } = store;
  await owner`
    INSERT INTO vx.webhooks (lane, id, account_id, url, description, types, state, enabled_at, secret, created_at)
    VALUES (1, 'whk_1', 'acct_1', 'https://example.com', '', '{}', 'paused', now(), 'whsec_', now())`;
  await owner`INSERT INTO vx.woken_queues VALUES (1, 'whk_1')`;
  let resumed: Promise<unknown> | undefined;
  await owner.begin(async (claim) => {
    await claim`SELECT vx.claim_deliveries(9, 4, 9, '{}', 1023::smallint)`;
    resumed = database.call(
      "update_webhook",
      null,
      1,
      "acct_1",
      "whk_1",
      JSON.stringify({ state: "enabled" }),
    );
    await vi.waitFor(async () => {
      const waiting = await owner`
        SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%update_webhook%'
          AND datname = current_database()`;
      expect(waiting).toHaveLength(1);
    });
  });
  await resumed;
  const [queue] = await owner`SELECT ready_at <= clock_timestamp() AS is_ready FROM vx.webhook_queues`;
  expect(queue).toEqual({ is_ready: true });
});

test("a thousand paused webhooks with events take no turns from others in each minute", async () => {
  const { owner } = store;
  await owner`TRUNCATE vx.webhooks, vx.webhook_queues, vx.woken_queues`;
  await owner`
    INSERT INTO vx.webhooks (lane, id, account_id, url, description, types, state, enabled_at, secret, created_at)
    SELECT 1, 'whk_' || n, 'acct_' || n, 'https://example.com', '', '{}', 'paused', now(), 'whsec_', now()
    FROM generate_series(1, 1000) n`;
  await owner`INSERT INTO vx.woken_queues SELECT lane, id FROM vx.webhooks`;
  for (;;) {
    await owner`SELECT vx.claim_deliveries(9, 4, 10, '{}', 1023::smallint)`;
    const [ready] = await owner`SELECT FROM vx.webhook_queues WHERE ready_at <= clock_timestamp()`;
    if (!ready) break;
  }
  const soon =
    await owner`SELECT FROM vx.webhook_queues WHERE ready_at < clock_timestamp() + interval '10 minutes'`;
  expect(soon).toHaveLength(0);
});
