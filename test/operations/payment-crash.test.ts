import { afterAll, afterEach, beforeAll, expect, onTestFinished, test, vi } from "vitest";
import { laneOfId } from "../../src/domain/lane.ts";
import { sendJson } from "../rest/send-json.ts";
import { OPERATOR_TOKEN, startTestApp, type TestApp } from "../support/app.ts";
import { FakeStripe, type StripeEvent } from "../support/fake-stripe.ts";
import { createTestKey, operatorOf, type TestKey } from "../support/fixtures.ts";
import { moneyProblems } from "../support/payer.ts";
import { type ServerProcess, startServerProcess } from "../support/process.ts";
import { createTemporaryFolder } from "../support/temporary-folder.ts";

const folder = createTemporaryFolder("payments");
let stripe: FakeStripe;
/** Takes no payments. Other servers on its database do: one that is killed, and one in this process that continues. */
let app: TestApp;
let victim: ServerProcess;
let url: string;
let successor: TestApp | undefined;

beforeAll(async () => {
  stripe = await FakeStripe.start();
  app = await startTestApp();
});
afterEach(async () => {
  resetStripe();
  await successor?.stop();
  successor = undefined;
});
afterAll(async () => {
  expect(await moneyProblems(app.database)).toEqual([]);
  await stripe.stop();
  await app.stop();
  folder.remove();
});

function resetStripe(): void {
  stripe.before = () => undefined;
  stripe.losesAnswer = () => false;
  stripe.decide = () => "succeeded";
}

async function startVictim(): Promise<void> {
  const env = { ...stripe.env, DATABASE_URL: app.database.url, VX_DATA_DIR: folder.path, VX_ADMIN_TOKEN: OPERATOR_TOKEN };
  victim = startServerProcess(env);
  onTestFinished(() => void victim.child.kill("SIGKILL"));
  url = await victim.line(/vx ready on (http\S+)/);
}

async function startSuccessor(): Promise<void> {
  resetStripe();
  successor = await startTestApp({ database: app.database, env: stripe.env });
  ({ url } = successor);
}

const newKey = () => createTestKey(operatorOf(app), { scopes: ["read", "billing"] });

const create = ({ secret }: TestKey) =>
  sendJson(url, {
    verb: "POST",
    path: "/v1/topups",
    secret,
    body: { amount_micros: 5_000_000 },
    headers: { "idempotency-key": "order-1" },
  });

async function topUpId(payer: TestKey): Promise<string> {
  const { status, body } = await create(payer);
  expect(status).toBe(200);
  return (body as { topup: { id: string } }).topup.id;
}

async function rows({ accountId }: TestKey): Promise<string[]> {
  const found = await app.database.owner<{ kind: string }[]>`
    SELECT kind FROM vx.ledger WHERE account_id = ${accountId} ORDER BY seq`;
  return found.map(({ kind }) => kind);
}

/** Delivers the event of a payment to the server, which is about to fail. */
function lost(event: StripeEvent | undefined): Promise<unknown> {
  if (!event) throw new Error("there is no event");
  return stripe.deliver(event, url).catch((error: unknown) => error);
}

/** Resolves when the statement that credits a payment waits for a lock. */
function creditWaits(): Promise<void> {
  return vi.waitFor(async () => {
    const waiting = await app.database.owner`
        SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
          AND query ~ 'vx\\.apply_payment\\('`;
    expect(waiting.length).toBe(1);
  });
}

async function killWhileCreditWaits(): Promise<void> {
  victim.child.kill("SIGSTOP");
  await creditWaits();
  // A step whose request timed out has ended.
  expect(stripe.abandoned).toEqual([]);
  await victim.end("SIGKILL");
}

/** Resolves when the next request to Stripe of this work waits there, until the server is killed. */
async function untilHeld(moment: "before" | "after", work: () => Promise<unknown>) {
  const reached = Promise.withResolvers<void>();
  const wait = async () => {
    [stripe.before, stripe.losesAnswer] = [() => undefined, () => false];
    reached.resolve();
    await victim.exited();
    return true;
  };
  if (moment === "after") stripe.losesAnswer = wait;
  else stripe.before = async () => ((await wait()) ? 500 : undefined);
  const ended = work().catch(() => undefined);
  await reached.promise;
  return { ended };
}

/** Their lanes differ, so that a lock on one of them does not stop the others. */
async function newKeys(count: number): Promise<TestKey[]> {
  const byLane = new Map<number, TestKey>();
  while (byLane.size < count) {
    const one = await newKey();
    byLane.set(laneOfId(one.accountId), one);
  }
  return [...byLane.values()];
}

test("a server that is killed before or after Stripe creates a page, while it asks Stripe and while it credits loses nothing, and credits once", async () => {
  await startVictim();
  const [before, after, asking, crediting] = (await newKeys(4)) as [TestKey, TestKey, TestKey, TestKey];
  const [asked] = stripe.pay(await topUpId(asking)) as [StripeEvent];
  const credited = stripe.pay(await topUpId(crediting));
  stripe.abandoned = [];
  await app.database.owner.begin(async (sql) => {
    await sql`SELECT 1 FROM vx.lanes WHERE lane = vx.lane_of(${crediting.accountId}) FOR UPDATE`;
    const delivery = lost(credited[0]);
    await creditWaits();
    const held = [
      await untilHeld("before", () => create(before)),
      await untilHeld("after", () => create(after)),
      await untilHeld("before", () => lost(asked)),
    ];
    await killWhileCreditWaits();
    await Promise.all([delivery, ...held.map(({ ended }) => ended)]);
  });
  expect(await rows(asking)).toEqual([]);
  await startSuccessor();
  for (const payer of [before, after]) {
    const id = await topUpId(payer);
    const found = await app.database.owner<{ id: string; page: string }[]>`
      SELECT id, page_id AS page FROM vx.topups WHERE account_id = ${payer.accountId}`;
    // The repetition has the only page.
    expect(found).toEqual([{ id, page: stripe.sessionOf(id).id }]);
  }
  for (const event of [asked, ...credited, ...credited]) expect(await stripe.deliver(event, url)).toBe(200);
  for (const payer of [asking, crediting]) expect(await rows(payer)).toEqual(["topup"]);
});

test("a database that breaks off while it credits credits nothing, and the next delivery credits once", async () => {
  await startSuccessor();
  const key = await newKey();
  const events = stripe.pay(await topUpId(key));
  const { owner } = app.database;
  const { delivery } = await owner.begin(async (sql) => {
    await sql`SELECT 1 FROM vx.lanes WHERE lane = vx.lane_of(${key.accountId}) FOR UPDATE`;
    const delivery = lost(events[0]);
    await creditWaits();
    await owner`
      SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND query ~ 'vx\\.apply_payment\\('`;
    return { delivery };
  });
  await delivery;
  expect(await rows(key)).toEqual([]);
  for (const event of events) expect(await stripe.deliver(event, url)).toBe(200);
  expect(await rows(key)).toEqual(["topup"]);
});

/** Starts a top-up of each account: the new balances are 0. Its id is also that of its card. */
async function startTopUps(keys: readonly TestKey[]): Promise<void> {
  await app.database.owner.begin(async (sql) => {
    for (const { accountId } of keys) {
      await sql`
        INSERT INTO vx.auto_topups (lane, account_id, is_enabled, threshold_micros, amount_micros, monthly_max_micros, currency,
          customer_id, method_id)
        VALUES (vx.lane_of(${accountId}), ${accountId}, true, 1000000, 5000000, 50000000, 'usd', 'cus_1', ${accountId})`;
      await sql`SELECT vx.resume_auto_topup(vx.lane_of(${accountId}), ${accountId})`;
    }
  });
}

test("a server that is killed at any step of automatic top-ups pays once, credits once, and reports a declined card once", async () => {
  await startVictim();
  const keys = (await newKeys(5)) as [TestKey, TestKey, TestKey, TestKey, TestKey];
  const [created, confirming, confirmed, crediting, declined] = keys;
  const { owner } = app.database;
  const reached = new Set<TestKey>();
  const wait = async (key: TestKey) => {
    reached.add(key);
    await victim.exited();
  };
  /** The account whose payment this request confirms or cancels. */
  const payerOf = (request: string, action: string) =>
    keys.find((key) => request === `POST /v1/payment_intents/${stripe.intentOf(key.accountId)?.id}/${action}`);
  stripe.abandoned = [];
  stripe.decide = (card) => (card === declined.accountId ? "insufficient_funds" : "succeeded");
  stripe.losesAnswer = async (request) => {
    // Called as soon as the payment exists.
    const isCreation = request === "POST /v1/payment_intents" && !reached.has(created) && stripe.intentOf(created.accountId);
    if (isCreation) await wait(created);
    else if (payerOf(request, "confirm") === confirmed) await wait(confirmed);
    else return false;
    return true;
  };
  await owner.begin(async (sql) => {
    stripe.before = async (request) => {
      const confirms = payerOf(request, "confirm");
      // Only the credit waits for the lock, which is taken when the payment is confirmed.
      if (confirms === crediting) await sql`SELECT 1 FROM vx.lanes WHERE lane = vx.lane_of(${crediting.accountId}) FOR UPDATE`;
      if (confirms === confirming) await wait(confirming);
      else if (payerOf(request, "cancel") === declined) await wait(declined);
      else return undefined;
      return 500;
    };
    await startTopUps(keys);
    await creditWaits();
    await vi.waitFor(() => expect(reached.size).toBe(4));
    await killWhileCreditWaits();
  });
  await startSuccessor();
  stripe.decide = (card) => (card === declined.accountId ? "insufficient_funds" : "succeeded");
  // Skips the minute after which another server continues.
  await owner`UPDATE vx.topups SET next_poll_at = now() WHERE is_automatic AND state = 'pending'`;
  for (const { accountId } of keys) {
    const isDeclined = accountId === declined.accountId;
    const topUps = () => owner<{ id: string; state: string }[]>`SELECT id, state FROM vx.topups WHERE account_id = ${accountId}`;
    await vi.waitFor(async () => expect(await topUps()).toMatchObject([{ state: isDeclined ? "failed" : "paid" }]));
    const [topUp] = await topUps();
    expect(stripe.charges.get(topUp?.id ?? "")).toBe(isDeclined ? undefined : 1);
    const entries = await owner`
      SELECT kind, amount_micros::integer AS micros FROM vx.ledger WHERE account_id = ${accountId}`;
    expect(entries).toEqual(isDeclined ? [] : [{ kind: "topup", micros: 5_000_000 }]);
    const [settings] = await owner`SELECT failures FROM vx.auto_topups WHERE account_id = ${accountId}`;
    expect(settings).toEqual({ failures: isDeclined ? 1 : 0 });
  }
});
