import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Cells } from "../../src/database/driver/cells.ts";
import { LaneMoved } from "../../src/database/driver/store-error.ts";
import { Deliverer } from "../../src/webhooks/deliverer.ts";
import type { Endpoint, Outcome, Sender } from "../../src/webhooks/sender.ts";
import { type Claim, storeAttempts } from "../../src/webhooks/store.ts";
import { useOwnStore, withCall } from "../support/store.ts";

const store = useOwnStore();
const POLL_MS = 500;
const ACCEPTED: Outcome = { status: 204, latencyMs: 2_000, error: "", answer: "", retryAfterMs: undefined };

/** The endpoints that were called, in this order. */
let called: string[];

/** Lets the deliverer poll until the check succeeds. */
const until = (check: () => unknown) =>
  vi.waitFor(
    async () => {
      vi.advanceTimersByTime(POLL_MS);
      await check();
    },
    { interval: 10 },
  );

afterEach(() => void vi.useRealTimers());
beforeEach(async () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  called = [];
  const { owner } = store;
  await owner`TRUNCATE vx.webhooks, vx.events, vx.deliveries, vx.webhook_queues, vx.woken_queues`;
});

/** Creates a webhook that received nothing yet, with events that are due for some minutes. */
async function addDue(id: string, events: number, minutes: number, lane = 2): Promise<void> {
  const { owner } = store;
  const times = { created_at: new Date(), enabled_at: new Date() };
  await owner`
    INSERT INTO vx.webhooks ${owner({ lane, account_id: id, id, url: `http://${id}/`, description: "", types: [], secret: "s", ...times })}`;
  await owner`
    INSERT INTO vx.events (lane, account_id, seq, id, type, created_at, data)
    SELECT ${lane}, ${id}, n, 'evt_' || ${id}::text || ':' || n, 'credit.posted', now() - make_interval(mins => ${minutes}), '{}'
    FROM generate_series(1, ${events}) n`;
  await owner`
    INSERT INTO vx.deliveries (lane, account_id, seq, webhook_id, event_id, created_at, due_at)
    SELECT lane, account_id, seq, ${id}, id, created_at, created_at FROM vx.events WHERE account_id = ${id}`;
  await owner`INSERT INTO vx.woken_queues VALUES (${lane}, ${id})`;
}

function startDeliverer(database: Cells, answer: () => Promise<Outcome>): Deliverer {
  const send = ({ url }: Endpoint) => {
    called.push(new URL(url).hostname);
    return answer();
  };
  const sender = { send, close: async () => undefined } as unknown as Sender;
  const deliverer = new Deliverer({
    database,
    senders: { operators: sender, customers: sender },
    random: () => 0.5,
    onAttempt: () => undefined,
    onFailure: () => undefined,
  });
  deliverer.start();
  return deliverer;
}

test("endpoints with many events that are due take turns with others", async () => {
  const busy = Array.from({ length: 30 }, (_, i) => `whk_busy${i}`);
  for (const id of busy) await addDue(id, 100, 60);
  const deliverer = startDeliverer(store.database, async () => {
    if (called.length === 31) await addDue("whk_quiet", 1, 0);
    return ACCEPTED;
  });
  await until(() => expect(called).toContain("whk_quiet"));
  // Each of the others had a few turns meanwhile, and would have had a hundred.
  expect(called.indexOf("whk_quiet")).toBeLessThan(10 * busy.length);
  await deliverer.stop();
});

test.each(["operators", "customers"])("endpoints of %s that hang leave places for new ones", async (whose) => {
  const { owner } = store;
  const hanging = Array.from({ length: 6 }, (_, i) => `who_${i}`);
  for (const id of hanging) {
    await addDue(id, 1, 60);
    if (whose === "operators") await owner`UPDATE vx.webhooks SET lane = 1024, account_id = '' WHERE id = ${id}`;
    await owner`
      INSERT INTO vx.webhook_queues (lane, webhook_id, is_of_operators, due_at, is_hanging)
      VALUES (2, ${id}, ${whose === "operators"}, now() - interval '1 hour', true)`;
  }
  const added = Array.from({ length: 5 }, (_, i) => `whk_new${i}`);
  for (const id of added) await addDue(id, 1, 0);
  const released = Promise.withResolvers<Outcome>();
  const deliverer = startDeliverer(store.database, () => released.promise);
  await until(() => expect(called).toEqual(expect.arrayContaining(added)));
  expect(called.filter((id) => hanging.includes(id))).toHaveLength(4);
  released.resolve(ACCEPTED);
  await deliverer.stop();
});

test("attempts whose outcomes a cell does not store take no places from other cells", async () => {
  const { database } = store;
  for (let i = 0; i < 9; i++) await addDue(`whk_first${i}`, 1, 60);
  let isDown = false;
  const other = withCall(database, async (name, ...parameters) =>
    name === "claim_deliveries" && !isDown ? [] : await database.call(name, ...parameters),
  ).home;
  const failing = withCall(database, async (name, ...parameters) => {
    if (isDown) throw new Error("The cell does not answer.");
    return await database.call(name, ...parameters);
  }).home;
  const cells: Cells = Object.assign(Object.create(database), { all: [other, failing] });
  const released = Promise.withResolvers<Outcome>();
  const deliverer = startDeliverer(cells, () => released.promise);
  await until(() => expect(called).toHaveLength(9));
  isDown = true;
  released.resolve(ACCEPTED);
  await addDue("whk_other", 1, 0);
  await until(() => expect(called).toContain("whk_other"));
  isDown = false;
  await deliverer.stop();
});

test("outcomes of lanes that no cell owns delay no deliveries of other lanes", async () => {
  const { database } = store;
  const moved = 3;
  const cell = withCall(database, async (name, ...parameters) => {
    if (name === "store_attempts" && String(parameters[0]).includes("whk_moved")) throw new LaneMoved();
    return await database.call(name, ...parameters);
  }).home;
  const cells: Cells = Object.assign(Object.create(database), {
    all: [cell],
    at: () => cell,
    owns: (_cell: number, lane: number) => lane !== moved,
  });
  await addDue("whk_moved", 1, 60, moved);
  const deliverer = startDeliverer(cells, async () => ACCEPTED);
  await until(() => expect(called).toEqual(["whk_moved"]));
  await addDue("whk_other", 1, 0);
  await until(() => expect(called).toEqual(["whk_moved", "whk_other"]));
  await deliverer.stop();
});

test("a delivery that was accepted while the deliverer stops is stored, and others are made again", async () => {
  await addDue("whk_a", 1, 0);
  await addDue("whk_b", 1, 0);
  const released = Promise.withResolvers<void>();
  const deliverer = startDeliverer(store.database, async () => {
    const isAccepted = called.at(-1) === "whk_a";
    await released.promise;
    return isAccepted ? ACCEPTED : { ...ACCEPTED, status: undefined, error: "The server was stopped." };
  });
  await until(() => expect(called).toHaveLength(2));
  const stopping = deliverer.stop();
  released.resolve();
  await stopping;
  expect(await store.owner`SELECT webhook_id, state, attempts FROM vx.deliveries ORDER BY 1`).toEqual([
    { webhook_id: "whk_a", state: "delivered", attempts: 1 },
    { webhook_id: "whk_b", state: "pending", attempts: 0 },
  ]);
});

test("an outcome does not count for another event that has the number of the delivered one", async () => {
  const { owner } = store;
  await addDue("whk_a", 1, 0);
  let replaced = 0;
  const deliverer = startDeliverer(store.database, async () => {
    if (replaced++ === 0)
      for (const [table, column] of Object.entries({ events: "id", deliveries: "event_id" }))
        await owner`UPDATE vx.${owner(table)} SET ${owner(column)} = 'evt_of_copy'`;
    return ACCEPTED;
  });
  const claimOver = () => owner`UPDATE vx.webhook_queues SET due_at = now() WHERE claimed_until = '-infinity'`;
  await until(async () => {
    await claimOver();
    expect(called).toEqual(["whk_a", "whk_a"]);
  });
  await deliverer.stop();
  expect(await owner`SELECT event_id, state, attempts FROM vx.deliveries`).toEqual([
    { event_id: "evt_of_copy", state: "delivered", attempts: 1 },
  ]);
});

test("an endpoint is fast after ten minutes without a slow attempt, and a new one after its first fast attempt", async () => {
  const { owner } = store;
  await addDue("whk_1", 1, 0);
  const queue = { lane: 2, webhook_id: "whk_1" };
  await owner`INSERT INTO vx.webhook_queues ${owner({ ...queue, is_of_operators: false, due_at: new Date() })}`;
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
