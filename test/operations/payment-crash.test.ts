import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from "vitest";
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
/** Takes no payments; another server on its database does, and is killed. */
let app: TestApp;
let server: { readonly process: ServerProcess; readonly url: string };
let key: TestKey;

beforeAll(async () => {
  stripe = await FakeStripe.start();
  app = await startTestApp();
  server = await start();
});
beforeEach(async () => {
  key = await newKey();
});
afterEach(() => {
  stripe.before = () => undefined;
  stripe.losesAnswer = () => false;
  stripe.decide = () => "succeeded";
});
afterAll(async () => {
  expect(await moneyProblems(app.database)).toEqual([]);
  await server.process.end("SIGKILL");
  await stripe.stop();
  await app.stop();
  folder.remove();
});

async function start() {
  const process = startServerProcess({
    ...stripe.env,
    DATABASE_URL: app.database.url,
    VX_DATA_DIR: folder.path,
    VX_ADMIN_TOKEN: OPERATOR_TOKEN,
  });
  return { process, url: await process.line(/vx ready on (http\S+)/) };
}

const newKey = () => createTestKey(operatorOf(app), { scopes: ["read", "billing"] });

const create = ({ secret }: TestKey) =>
  sendJson(server.url, {
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
  return stripe.deliver(event, server.url).catch((error: unknown) => error);
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

/** Resolves when the next request to Stripe of this work waits there, until the server is killed. */
async function untilHeld(moment: "before" | "after", work: () => Promise<unknown>) {
  const reached = Promise.withResolvers<void>();
  const wait = async () => {
    [stripe.before, stripe.losesAnswer] = [() => undefined, () => false];
    reached.resolve();
    await server.process.exited();
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
    server.process.child.kill("SIGSTOP");
    await creditWaits();
    // A step whose request timed out has ended.
    expect(stripe.abandoned).toEqual([]);
    await server.process.end("SIGKILL");
    await Promise.all([delivery, ...held.map(({ ended }) => ended)]);
  });
  expect(await rows(asking)).toEqual([]);
  server = await start();
  for (const payer of [before, after]) {
    const id = await topUpId(payer);
    const found = await app.database.owner<{ id: string; page: string }[]>`
      SELECT id, page_id AS page FROM vx.topups WHERE account_id = ${payer.accountId}`;
    // The repetition has the only page.
    expect(found).toEqual([{ id, page: stripe.sessionOf(id).id }]);
  }
  for (const event of [asked, ...credited, ...credited]) expect(await stripe.deliver(event, server.url)).toBe(200);
  for (const payer of [asking, crediting]) expect(await rows(payer)).toEqual(["topup"]);
});

test("a database that breaks off while it credits credits nothing, and the next delivery credits once", async () => {
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
  for (const event of events) expect(await stripe.deliver(event, server.url)).toBe(200);
  expect(await rows(key)).toEqual(["topup"]);
});

/** Starts a top-up: the balance of the new account is 0. */
async function startTopUp(): Promise<void> {
  const { owner } = app.database;
  await owner`
    INSERT INTO vx.auto_topups (lane, account_id, is_enabled, threshold_micros, amount_micros, monthly_max_micros, currency,
      customer_id, method_id) VALUES (vx.lane_of(${key.accountId}), ${key.accountId}, true, 1000000, 5000000, 50000000, 'usd', 'cus_1', 'pm_1')`;
  await owner`SELECT vx.resume_auto_topup(vx.lane_of(${key.accountId}), ${key.accountId})`;
}

/** Skips the minute after which another server continues. */
async function makeDue(): Promise<void> {
  await app.database.owner`
    UPDATE vx.topups SET next_poll_at = now() WHERE account_id = ${key.accountId} AND state = 'pending'`;
}

async function topUps() {
  const { body } = await sendJson(server.url, { verb: "GET", path: "/v1/topups", secret: key.secret });
  return (body as { topups: { id: string; state: string }[] }).topups;
}

async function expectPaidOnce(): Promise<void> {
  server = await start();
  await makeDue();
  await vi.waitFor(async () => expect(await topUps()).toMatchObject([{ state: "paid" }]));
  const [topUp] = await topUps();
  expect(stripe.charges.get(topUp?.id ?? "")).toBe(1);
  const found = await app.database.owner`
    SELECT kind, amount_micros::integer AS micros FROM vx.ledger WHERE account_id = ${key.accountId}`;
  expect(found).toEqual([{ kind: "topup", micros: 5_000_000 }]);
}

const CREATE = "POST /v1/payment_intents";

test.each([
  ["after the payment was created, before it is stored", "losesAnswer", (request: string) => request === CREATE],
  ["before the payment is confirmed", "before", (request: string) => request.endsWith("/confirm")],
  ["after the payment was confirmed", "losesAnswer", (request: string) => request.endsWith("/confirm")],
] as const)(
  "a server that is killed %s pays once",
  async (_, step, isStep) => {
    const killed = Promise.withResolvers<void>();
    const kill = () => {
      server.process.child.kill("SIGKILL");
      killed.resolve();
    };
    if (step === "before") {
      stripe.before = async (request) => {
        if (!isStep(request)) return undefined;
        kill();
        await server.process.exited();
        return 500;
      };
    } else {
      stripe.losesAnswer = (request) => {
        if (isStep(request)) kill();
        return isStep(request);
      };
    }
    await startTopUp();
    await killed.promise;
    await server.process.exited();
    stripe.before = () => undefined;
    stripe.losesAnswer = () => false;
    await expectPaidOnce();
  },
  40_000,
);

test("a server that is killed while it credits pays and credits once", async () => {
  const { owner } = app.database;
  await owner.begin(async (sql) => {
    stripe.before = async (request) => {
      // The lock is taken when the payment is confirmed, so that only the credit waits for it.
      if (request.endsWith("/confirm")) await sql`SELECT 1 FROM vx.lanes WHERE lane = vx.lane_of(${key.accountId}) FOR UPDATE`;
      return undefined;
    };
    await startTopUp();
    await creditWaits();
    await server.process.end("SIGKILL");
  });
  stripe.before = () => undefined;
  await expectPaidOnce();
}, 40_000);

test("a server that is killed after a card was declined, before the payment is cancelled, reports one failure", async () => {
  stripe.decide = () => "insufficient_funds";
  stripe.before = async (request) => {
    if (!request.endsWith("/cancel")) return undefined;
    server.process.child.kill("SIGKILL");
    await server.process.exited();
    return 500;
  };
  await startTopUp();
  await vi.waitFor(() => expect(server.process.child.killed).toBe(true));
  await server.process.exited();
  stripe.before = () => undefined;
  server = await start();
  await makeDue();
  await vi.waitFor(async () => expect(await topUps()).toMatchObject([{ state: "failed" }]));
  const found = await app.database.owner`
    SELECT failures FROM vx.auto_topups WHERE account_id = ${key.accountId}`;
  expect(found).toEqual([{ failures: 1 }]);
}, 40_000);
