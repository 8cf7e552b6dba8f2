import { expect, test } from "vitest";
import { type Claim, storeAttempts } from "../../src/webhooks/store.ts";
import { TEST_CALLER } from "../support/action.ts";
import { untilWaiting } from "../support/database.ts";
import { useOwnStore, withCall } from "../support/store.ts";

const store = useOwnStore();

test("a webhook that is resumed while a claim still finds it paused is due at once", async () => {
  const { owner, database } = store;
  await owner`
    INSERT INTO vx.webhooks (lane, id, account_id, url, description, types, state, enabled_at, secret, created_at)
    VALUES (1, 'whk_1', 'acct_1', 'https://example.com', '', '{}', 'paused', now(), 'whsec_', now())`;
  await owner`INSERT INTO vx.woken_queues VALUES (1, 'whk_1')`;
  let resumed: Promise<unknown> | undefined;
  await owner.begin(async (claim) => {
    await claim`SELECT vx.claim_deliveries(9, 4, 9, '{}', 1023::smallint)`;
    resumed = database.call("update_webhook", TEST_CALLER, 1, "acct_1", "whk_1", JSON.stringify({ state: "enabled" }));
    await untilWaiting(store, 1, "update_webhook");
  });
  await resumed;
  const [queue] = await owner`SELECT ready_at <= clock_timestamp() AS is_ready FROM vx.webhook_queues`;
  expect(queue).toEqual({ is_ready: true });
});

test("a webhook that gets another address just before it is disabled stays enabled", async () => {
  const { owner, database } = store;
  await owner`TRUNCATE vx.webhooks, vx.webhook_queues, vx.woken_queues`;
  const webhook = { lane: 1, id: "wh_01", account_id: "acct_1", url: "https://old.example.com" };
  const times = { created_at: new Date(), enabled_at: new Date() };
  await owner`INSERT INTO vx.webhooks ${owner({ ...webhook, description: "", types: [], secret: "whsec_", ...times })}`;
  await owner`INSERT INTO vx.webhook_queues (lane, webhook_id, is_of_operators, due_at) VALUES (1, 'wh_01', false, now())`;
  const claim = { lane: 1, webhook_id: "wh_01", claim: 0n, revision: 0, account_id: "acct_1", seq: 1n, attempts: 0 };
  const gone = { status: 410, latencyMs: 1, error: "gone", answer: "", retryMs: 1_000, pauseMs: undefined };
  const store410 = async (change?: object) => {
    const cells = withCall(database, async (name, ...parameters) => {
      if (name === "disable_webhook" && change)
        await database.call("update_webhook", TEST_CALLER, 1, "acct_1", "wh_01", JSON.stringify(change));
      return await database.call(name, ...parameters);
    });
    const [revision] = await owner`SELECT revision FROM vx.webhooks`;
    const attempts = [{ claim: { ...claim, ...revision } as Claim, outcome: gone }];
    await storeAttempts(Object.assign(cells, { at: () => cells.home }), 0, attempts);
    return (await owner`SELECT state FROM vx.webhooks`)[0]?.state;
  };
  expect(await store410({ url: "https://new.example.com" })).toBe("enabled");
  expect(await store410()).toBe("disabled");
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
  const soon = await owner`SELECT FROM vx.webhook_queues WHERE ready_at < clock_timestamp() + interval '10 minutes'`;
  expect(soon).toHaveLength(0);
});
