import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { stepOfClosing } from "../../src/accounts/closing.ts";
import type { Database } from "../../src/database/driver/database.ts";
import { textColumns } from "../../tools/sql/personal-columns.ts";
import { TEST_ACTION } from "../support/action.ts";
import { FakeStripe } from "../support/fake-stripe.ts";
import { replyWhen } from "../support/fake-upstreams/behaviours.ts";
import { COST, FilledAccount } from "../support/filled-account.ts";
import type { TestKey } from "../support/fixtures.ts";
import { type Metered, startMetered } from "../support/metered.ts";
import { openDatabase } from "../support/store.ts";

const reason = "the customer left";
/** The personal columns that FilledAccount does not fill. */
const EMPTY = ["auto_topups.page_url", "deliveries.error", "deliveries.answer", "failures.message", "keys.playground_of"].concat(
  "topups.receipt_url",
  "topups.invoice_url",
);

let stripe: FakeStripe;
let metered: Metered;
let account: FilledAccount;
let key: TestKey;
/** In every text about the customer of a test. */
let secret = "";
let database: Database;

beforeAll(async () => {
  stripe = await FakeStripe.start();
  metered = await startMetered({ env: { ...stripe.env, VX_PUBLIC_URL: "https://api.example" } });
  database = openDatabase(metered.app.database.address);
});
beforeEach(async () => {
  account = await FilledAccount.create(metered, stripe);
  ({ key, secret } = account);
});
afterEach(() => {
  stripe.before = () => undefined;
});
afterAll(async () => {
  await database.close();
  await metered.stop();
  await stripe.stop();
});

const send = (verb: string, path: string, body?: unknown, headers?: Record<string, string>) =>
  account.send(verb, path, body, headers);
const generate = () => account.generate();
const fill = () => account.fill();

const close = (more: { balance?: string; dryRun?: boolean } = {}) =>
  metered.operator.closeAccount({ accountId: key.accountId, reason, balance: "written_off", ...more });

async function entries(): Promise<string[]> {
  const list = await metered.operator.listLedgerEntries({ accountId: key.accountId });
  return list.entries.map(({ kind, amountMicros }) => `${kind} ${amountMicros}`);
}

const auditFindings = async () => (await metered.operator.audit({})).findings;
const remains = () => account.remains();

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
  const marked = (await textColumns(metered.app.database.owner)).filter(({ mark }) => mark === "personal: erased");
  const personal = marked.map(({ column }) => column);
  expect(await account.filledColumns(personal)).toEqual(personal.filter((column) => !EMPTY.includes(column)));
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
  expect(await account.filledColumns(personal)).toEqual([]);
  expect(await auditFindings()).toEqual([]);
  const [charge] = (await metered.operator.listLedgerEntries({ accountId: key.accountId, kind: "generation" })).entries;
  expect(charge?.user).toMatch(/^user_[0-9a-f]{32}$/);
  const { webhooks } = await metered.operator.listWebhooks({ accountId: key.accountId });
  expect(webhooks).toEqual([]);
  const usage = await metered.operator.getUsage({ accountId: key.accountId, groupBy: ["user"] });
  expect(usage.rows.map(({ usage: row }) => row?.user)).toContain(charge?.user);
  const links = await metered.app.database.owner`SELECT FROM vx.person_accounts WHERE account_id = ${key.accountId}`;
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
  await generate();
  const { operator } = metered;
  const { accountId } = key;
  const [charge] = (await operator.listLedgerEntries({ accountId, kind: "generation" })).entries;
  const credit = { accountId, amountMicros: 5_000_000n, reason, idempotencyKey: "before" };
  const { entry } = await operator.creditAccount(credit);
  await close();
  const auto = { enabled: true, thresholdMicros: 1n, amountMicros: 10_000_000n, monthlyMaxMicros: 10_000_000n };
  const webhook = { accountId, url: "https://hooks.example/", reason };
  const late = { ...credit, idempotencyKey: "after" };
  const limit = { metric: "generations", window: "day", amount: 1n };
  const changes = [
    operator.resumeAccount({ accountId }),
    operator.createKey({ accountId, name: "new" }),
    operator.updateAccount({ accountId, name: "new" }),
    operator.updateAccount({ accountId, lowBalanceMicros: 1n }),
    operator.putAutoTopUp({ accountId, ...auto, reason }),
    operator.createWebhook(webhook),
    operator.creditAccount(late),
    operator.adjustAccount({ ...late, amountMicros: -1n }),
    operator.refundEntry({ accountId, entryId: charge?.id ?? "", reason, idempotencyKey: "refund" }),
    operator.setAccountPlan({ accountId, plan: "pro" }),
    operator.setAccountPrices({ accountId, change: { case: "discountBps", value: 1_000 } }),
    operator.setLimit({ owner: { case: "accountId", value: accountId }, limit }),
    operator.setLimit({ owner: { case: "keyId", value: key.id }, limit }),
    operator.setKeyLimit({ keyId: key.id, rateLimitRpm: 1 }),
  ];
  for (const change of await Promise.allSettled(changes))
    expect(String((change as PromiseRejectedResult).reason)).toMatch(/is closed, which is final/);
  // A repetition of what was done before changes nothing.
  expect((await operator.creditAccount(credit)).entry?.id).toBe(entry?.id);
});

test("a call that runs ends and is charged before the balance leaves; new calls are refused at once", async () => {
  const gate = Promise.withResolvers<void>();
  metered.upstream.next(replyWhen(gate.promise));
  const before = metered.upstream.calls.length;
  const running = generate();
  await metered.upstream.until(({ calls }) => calls.length === before + 1);
  expect(await close({ balance: "refunded" })).toMatchObject({ closed: false, account: { state: "suspended" } });
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
    const step = { reason, balance: "written_off", isEndedElsewhere, isLogged: statuses.length === 0, rows: 1 };
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
  const step = { reason, balance: "written_off", isEndedElsewhere: true, isLogged: false, rows: 1_000 };
  expect(await stepOfClosing(database, TEST_ACTION, key.accountId, step)).toMatchObject({ status: "closed" });
  for (const event of stripe.pay(topUpId)) await stripe.deliver(event, app.url);
  expect((await entries())[0]).toBe("topup 25000000");
  expect(app.logText()).toMatch(new RegExp(`"topup":"${topUpId}".*"reason":"closed"`));
  await expect(close({ balance: "" })).rejects.toThrow(/written off or was refunded/);
  expect(await close({ balance: "refunded" })).toMatchObject({ closed: true, entry: { kind: "refund" } });
  const { account } = await operator.getAccount({ accountId: key.accountId });
  expect(account).toMatchObject({ state: "closed", balanceMicros: 0n });
  expect(await auditFindings()).toEqual([]);
});
