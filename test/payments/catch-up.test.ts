import { afterEach, beforeAll, expect, test } from "vitest";
import { getAutoTopUp } from "../../src/payments/auto-top-up-store.ts";
import { getTopUp } from "../../src/payments/store.ts";
import { StripePayments } from "../../src/payments/stripe/stripe-payments.ts";
import { TopUps } from "../../src/payments/top-ups.ts";
import { TEST_ACTION } from "../support/action.ts";
import { FakeStripe, WEBHOOK_SECRET } from "../support/fake-stripe.ts";
import { createPayer } from "../support/payer.ts";
import { started } from "../support/started.ts";
import { useOwnStore } from "../support/store.ts";
import { typeIds } from "../support/type-ids.ts";

const store = useOwnStore();
let topUps: TopUps;
let provider: StripePayments;
let nowMs = Date.now();

const stripe = started(() => FakeStripe.start());
beforeAll(() => {
  provider = new StripePayments(
    { secretKey: "sk_test_x", webhookSecret: WEBHOOK_SECRET, api: new URL(stripe.url), invoices: false },
    "vx",
  );
  topUps = new TopUps({
    database: store.database,
    ids: typeIds,
    provider,
    minMicros: 1n,
    maxMicros: 1_000_000_000n,
    returnUrl: "https://app.example/",
    now: () => nowMs,
    onAlert: () => undefined,
  });
});

afterEach(() => {
  stripe.before = () => undefined;
  stripe.undelivered = [];
});

async function create() {
  const { accountId } = await createPayer(store.database, 0n);
  return await topUps.create({
    accountId,
    amountMicros: 5_000_000n,
    returnUrl: "",
    idempotencyKey: "order-1",
    action: TEST_ACTION,
  });
}

test("events that Stripe could not deliver are handled, each once", async () => {
  const { id, account_id: accountId } = await create();
  stripe.pay(id);
  stripe.undelivered = [...stripe.events, stripe.refund(id, 500)];
  await topUps.catchUp();
  expect(await getTopUp(store.database, accountId, id)).toMatchObject({ state: "refunded" });
  const asked = stripe.requests.length;
  await topUps.catchUp();
  // The second time, only the list is read.
  expect(stripe.requests.slice(asked)).toEqual(["GET /v1/events"]);
});

test("an event that fails does not prevent later ones, and is handled again", async () => {
  const { id, account_id: accountId } = await create();
  const other = await create();
  stripe.pay(id);
  stripe.pay(other.id);
  stripe.undelivered = [stripe.refund(other.id, 500), stripe.refund(id, 500)];
  const state = async () => (await getTopUp(store.database, accountId, id)).state;
  const failing = `GET /v1/payment_intents/${stripe.paymentOf(other.id)}`;
  stripe.before = (request) => (request === failing ? 400 : undefined);
  await expect(topUps.catchUp()).rejects.toMatchObject({ errors: [{ name: "ProviderError" }] });
  expect(await state()).toBe("refunded");
  stripe.before = () => undefined;
  await topUps.catchUp();
  expect((await getTopUp(store.database, other.account_id, other.id)).state).toBe("refunded");
});

test("a page for a payment method of another installation with the same Stripe account is ignored", async () => {
  const accountId = typeIds.account();
  const customerId = await provider.createCustomer(accountId);
  await provider.createMethodPage({ accountId, customerId, currency: "usd", returnUrl: "https://app.example/" });
  stripe.undelivered = [stripe.storeCard(stripe.setupOf(accountId))];
  await topUps.catchUp();
});

/** An account whose page for a payment method is to be looked up. */
async function createSetup(): Promise<string> {
  const { accountId } = await createPayer(store.database, 10_000_000n);
  await topUps.automatic.put({
    accountId,
    isEnabled: true,
    thresholdMicros: 5_000_000n,
    amountMicros: 10_000_000n,
    monthlyMaxMicros: 20_000_000n,
    returnUrl: "",
    replacesMethod: false,
    action: TEST_ACTION,
  });
  await store.owner`UPDATE vx.auto_topups SET due_at = '2020-01-01' WHERE account_id = ${accountId}`;
  return accountId;
}

test("an account that cannot be looked up does not prevent others, and a page that is gone at Stripe is forgotten", async () => {
  const [failing, gone, stored] = await Promise.all([createSetup(), createSetup(), createSetup()]);
  stripe.storeCard(stripe.setupOf(stored));
  stripe.before = (request) => {
    if (request.endsWith(stripe.setupOf(failing).id)) return 400;
    return request.endsWith(stripe.setupOf(gone).id) ? 404 : undefined;
  };
  await store.owner`UPDATE vx.auto_topups SET due_at = '2019-01-01' WHERE account_id = ${failing}`;
  await expect(topUps.automatic.poll(store.database)).rejects.toMatchObject({ errors: [{}] });
  const row = (accountId: string) => getAutoTopUp(store.database, accountId);
  expect(await row(failing)).toMatchObject({ page_id: stripe.setupOf(failing).id });
  expect(await row(gone)).toMatchObject({ page_id: null, method_id: null });
  expect(await row(stored)).toMatchObject({ page_id: null, method_id: "pm_4242" });
  const due = await store.owner`SELECT FROM vx.auto_topups WHERE account_id = ${gone} AND due_at IS NOT NULL`;
  expect(due).toHaveLength(0);
});

test("a top-up whose page was never created expires after a day, and gets no page any more", async () => {
  stripe.before = () => 500;
  await expect(create()).rejects.toMatchObject({ reason: "unavailable" });
  stripe.before = () => undefined;
  const [{ id, account_id: accountId } = { id: "", account_id: "" }] = await store.owner<
    { id: string; account_id: string }[]
  >`SELECT id, account_id FROM vx.topups WHERE page_id IS NULL`;
  const poll = async () => {
    await store.owner`UPDATE vx.topups SET next_poll_at = now() WHERE id = ${id}`;
    await topUps.poll(store.database);
    return (await getTopUp(store.database, accountId, id)).state;
  };
  expect(await poll()).toBe("pending");
  nowMs += 25 * 3_600_000;
  const repeated = { accountId, amountMicros: 5_000_000n, returnUrl: "", idempotencyKey: "order-1", action: TEST_ACTION };
  expect(await topUps.create(repeated)).toMatchObject({ id, page_id: null });
  expect(await poll()).toBe("expired");
});
