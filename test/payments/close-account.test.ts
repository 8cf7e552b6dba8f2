import { randomUUID } from "node:crypto";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { stepOfClosing } from "../../src/store/closing.ts";
import { Database } from "../../src/store/driver/database.ts";
import { sendJson } from "../rest/send-json.ts";
import { TEST_ACTION } from "../support/action.ts";
import { dumpTables } from "../support/database.ts";
import { FakeStripe } from "../support/fake-stripe.ts";
import { replyWhen } from "../support/fake-upstreams/behaviours.ts";
import { createTestKey, type TestKey } from "../support/fixtures.ts";
import { type Metered, MODEL, startMetered } from "../support/metered.ts";

/** In every text about the customer of a test. */
let secret = "";
/** A call holds 26 micros and costs 14. The fourth one takes a limit of 68 to 80 %. */
const COST = 14n;
const LIMIT = 68n;
const reason = "the customer left";
const SCOPES = ["read", "billing", "generate", "webhooks", "keys"];

let stripe: FakeStripe;
let metered: Metered;
let key: TestKey;
let database: Database;

beforeAll(async () => {
  stripe = await FakeStripe.start();
  metered = await startMetered({ env: { ...stripe.env, VX_PUBLIC_URL: "https://api.example" } });
  database = new Database(metered.app.database.address, {
    connections: 1,
    statementTimeoutMs: 5_000,
    name: "test",
    maxStatements: 10,
    maxWaitMs: 5_000,
  });
});
beforeEach(async () => {
  secret = `Rosalind-${randomUUID()}`;
  const { accountId } = await metered.payer(10_000_000n);
  key = await createTestKey(metered.operator, { accountId, scopes: SCOPES });
});
afterEach(() => {
  stripe.before = () => undefined;
});
afterAll(async () => {
  await database.close();
  await metered.stop();
  await stripe.stop();
});

const send = (verb: string, path: string, body?: unknown, headers: Record<string, string> = {}) =>
  sendJson(metered.app.url, {
    verb,
    path,
    secret: key.secret,
    headers,
    ...(body === undefined ? {} : { body }),
  });

const generate = (headers: Record<string, string> = {}) =>
  send(
    "POST",
    "/v1/generate",
    { model: MODEL, messages: [{ role: "user", content: "hi" }], max_tokens: 10, user: secret },
    headers,
  );

const close = (more: { balance?: string; dryRun?: boolean } = {}) =>
  metered.operator.closeAccount({ accountId: key.accountId, reason, balance: "written_off", ...more });

/** An account with personal data in all of its tables. Returns the id of a top-up that is not paid. */
async function fill(): Promise<string> {
  const { operator, app } = metered;
  const { accountId } = key;
  await operator.updateAccount({
    accountId,
    name: secret,
    email: `${secret}@example.com`,
    externalId: secret,
    notes: secret,
  });
  const limit = { metric: "cost", window: "day", amount: LIMIT, per: "user" };
  await operator.setLimit({ owner: { case: "accountId", value: accountId }, limit });
  for (const i of [1, 2, 3, 4])
    expect((await generate({ "idempotency-key": `${secret} ${i}` })).status).toBe(200);
  const named = { name: `${secret}'s laptop`, allowed_cidrs: ["203.0.113.77/32"] };
  expect((await send("POST", "/v1/keys", named)).status).toBe(200);
  const webhook = { url: `https://hooks.example/${secret}`, description: secret };
  expect((await send("POST", "/v1/webhooks", webhook)).status).toBe(200);
  const topUp = { amount_micros: 25_000_000, return_url: `https://app.example/${secret}` };
  const { body } = await send("POST", "/v1/topups", topUp, { "idempotency-key": secret });
  await operator.putAutoTopUp({
    accountId,
    enabled: true,
    thresholdMicros: 1_000_000n,
    amountMicros: 10_000_000n,
    monthlyMaxMicros: 100_000_000n,
  });
  await stripe.deliver(stripe.storeCard(stripe.setupOf(accountId)), app.url);
  const { owner } = app.database;
  await owner`
    INSERT INTO vx.people (id, issuer, subject, email, created_at, signed_in_at)
    VALUES (${accountId}, 'test', ${accountId}, 'ada@example.com', clock_timestamp(), clock_timestamp())`;
  await owner`INSERT INTO vx.person_accounts VALUES (${accountId}, ${accountId})`;
  await owner`
    INSERT INTO vx.members VALUES (vx.lane_of(${accountId}), ${accountId}, ${accountId}, ${secret}, 'owner', clock_timestamp())`;
  await owner`
    INSERT INTO vx.invitations VALUES (vx.lane_of(${accountId}), 'inv_' || ${accountId}, ${accountId}, sha256(''), 'viewer', ${secret},
      ${accountId}, clock_timestamp(), clock_timestamp() + interval '1 day')`;
  return (body as { topup: { id: string } }).topup.id;
}

async function entries(): Promise<string[]> {
  const list = await metered.operator.listLedgerEntries({ accountId: key.accountId });
  return list.entries.map(({ kind, amountMicros }) => `${kind} ${amountMicros}`);
}

const auditFindings = async () => (await metered.operator.audit({})).findings;
/** The rows with a text about the customer. */
const remains = async () =>
  (await dumpTables(metered.app.database)).split("\n").filter((row) => row.includes(secret));

/** Each change of an account leaves one of these. */
async function traces() {
  const { accountId } = key;
  const { events } = await metered.operator.listEvents({ accountId });
  const log = await metered.operator.listOperatorEvents({ accountId });
  const made = log.events.filter(({ outcome }) => outcome === "ok").map(({ method }) => method);
  return [await entries(), events.map(({ type }) => type), made];
}

async function customerOf(accountId: string): Promise<string> {
  const [row] = await metered.app.database.owner<{ customer_id: string }[]>`
    SELECT customer_id FROM vx.auto_topups WHERE account_id = ${accountId}`;
  return row?.customer_id ?? "";
}

test("closing ends everything of an account, and leaves its ledger with valid hashes and no personal data", async () => {
  const topUpId = await fill();
  const customerId = await customerOf(key.accountId);
  expect((await remains()).length).toBeGreaterThan(10);
  const closed = await close();
  expect(closed).toMatchObject({
    closed: true,
    account: {
      state: "closed",
      name: "closed",
      email: "",
      externalId: "",
      notes: "",
      balanceMicros: 0n,
      closedAt: expect.anything(),
    },
    entry: { kind: "adjustment", amountMicros: -10_000_000n + 4n * COST, reason },
    activeKeys: 3,
    webhooks: 1,
    pendingTopups: 1,
    paymentMethod: "visa •••• 4242, expires 03/2031",
  });
  expect((await generate()).status).toBe(401);
  expect(stripe.deletedCustomers.has(customerId)).toBe(true);
  expect(stripe.sessionOf(topUpId).status).toBe("expired");
  expect(await remains()).toEqual([]);
  expect(await auditFindings()).toEqual([]);
  const [charge] = (
    await metered.operator.listLedgerEntries({ accountId: key.accountId, kind: "generation" })
  ).entries;
  expect(charge?.user).toMatch(/^user_[0-9a-f]{32}$/);
  const { webhooks } = await metered.operator.listWebhooks({ accountId: key.accountId });
  expect(webhooks).toEqual([]);
  const usage = await metered.operator.getUsage({ accountId: key.accountId, groupBy: ["user"] });
  expect(usage.rows.map(({ usage: row }) => row?.user)).toContain(charge?.user);
  const links = await metered.app.database
    .owner`SELECT FROM vx.person_accounts WHERE account_id = ${key.accountId}`;
  expect(links).toHaveLength(0);
  const month = new Date().toISOString().slice(0, 7);
  const { statement } = await metered.operator.getStatement({ accountId: key.accountId, month });
  expect(statement).toMatchObject({ adjustmentsMicros: -10_000_000n + 4n * COST, closingBalanceMicros: 0n });
  // A repetition changes nothing.
  const before = await traces();
  expect(await close({ balance: "" })).toMatchObject({ closed: true, activeKeys: 0 });
  expect(await traces()).toEqual(before);
});

test("a closed account cannot be opened, changed or paid into by its operators", async () => {
  await close();
  const { operator } = metered;
  const { accountId } = key;
  const auto = {
    enabled: true,
    thresholdMicros: 1n,
    amountMicros: 10_000_000n,
    monthlyMaxMicros: 10_000_000n,
  };
  const webhook = { accountId, url: "https://hooks.example/", reason };
  const changes = [
    operator.resumeAccount({ accountId }),
    operator.createKey({ accountId, name: "new" }),
    operator.updateAccount({ accountId, name: "new" }),
    operator.putAutoTopUp({ accountId, ...auto, reason }),
    operator.createWebhook(webhook),
  ];
  for (const change of await Promise.allSettled(changes))
    expect(String((change as PromiseRejectedResult).reason)).toMatch(/is closed, which is final/);
});

test("a call that runs ends and is charged before the balance leaves; new calls are refused at once", async () => {
  const gate = Promise.withResolvers<void>();
  metered.upstream.next(replyWhen(gate.promise));
  const before = metered.upstream.calls.length;
  const running = generate();
  await metered.upstream.until(({ calls }) => calls.length === before + 1);
  expect(await close({ balance: "refunded" })).toMatchObject({
    closed: false,
    account: { state: "suspended" },
  });
  expect((await generate()).status).toBe(401);
  expect(await entries()).toEqual(["credit 10000000"]);
  gate.resolve();
  expect((await running).status).toBe(200);
  await metered.settled();
  expect(await close({ balance: "refunded" })).toMatchObject({ closed: true });
  const rest = 10_000_000n - COST;
  expect(await entries()).toEqual([`refund ${-rest}`, `generation ${-COST}`, "credit 10000000"]);
});

test("without a decision about the balance, and with a dry run, nothing changes", async () => {
  await fill();
  const before = await traces();
  expect(await close({ dryRun: true })).toMatchObject({ closed: false, activeKeys: 3, webhooks: 1 });
  expect(await traces()).toEqual(before);
  await expect(close({ balance: "" })).rejects.toThrow(/written off or was refunded/);
  expect(await traces()).toEqual(before);
  expect((await send("GET", "/v1/account")).body).toMatchObject({ state: "active", name: secret });
});

test.each(["POST /v1/checkout/sessions/cs_", "DELETE /v1/customers/"])(
  "a failure of the provider at %s closes nothing more; a repetition continues",
  async (failing) => {
    await fill();
    stripe.before = (request) => (request.startsWith(failing) ? 500 : undefined);
    await expect(close()).rejects.toThrow(/Repeat the call later/);
    expect((await generate()).status).toBe(401);
    const { account } = await metered.operator.getAccount({ accountId: key.accountId });
    expect(account).toMatchObject({ state: "suspended", name: secret });
    stripe.before = () => undefined;
    expect(await close()).toMatchObject({ closed: true });
    expect(await remains()).toEqual([]);
  },
  20_000,
);

test("a closing that ends after any step leaves valid sums, and a repetition takes the balance once", async () => {
  await fill();
  const statuses: string[] = [];
  for (let isEndedElsewhere = false; statuses.at(-1) !== "closed"; ) {
    const step = { reason, balance: "written_off", isEndedElsewhere, rows: 1 };
    const { status } = await stepOfClosing(database, TEST_ACTION, key.accountId, step);
    statuses.push(status);
    expect(await auditFindings()).toEqual([]);
    isEndedElsewhere ||= status === "elsewhere";
  }
  expect([...new Set(statuses)]).toEqual(["elsewhere", "erasing", "closed"]);
  expect(statuses.length).toBeGreaterThan(4);
  expect((await entries()).filter((entry) => entry.startsWith("adjustment"))).toHaveLength(1);
  expect(await remains()).toEqual([]);
});

test("a payment that arrives for a closed account is credited and told to operators; closing again takes it", async () => {
  const topUpId = await fill();
  const { app, operator } = metered;
  const step = { reason, balance: "written_off", isEndedElsewhere: true, rows: 1_000 };
  expect(await stepOfClosing(database, TEST_ACTION, key.accountId, step)).toMatchObject({
    status: "closed",
  });
  for (const event of stripe.pay(topUpId)) await stripe.deliver(event, app.url);
  expect((await entries())[0]).toBe("topup 25000000");
  expect(app.logText()).toMatch(new RegExp(`"topup":"${topUpId}".*"reason":"closed"`));
  await expect(close({ balance: "" })).rejects.toThrow(/written off or was refunded/);
  expect(await close({ balance: "refunded" })).toMatchObject({ closed: true, entry: { kind: "refund" } });
  const { account } = await operator.getAccount({ accountId: key.accountId });
  expect(account).toMatchObject({ state: "closed", balanceMicros: 0n });
  expect(await auditFindings()).toEqual([]);
});
