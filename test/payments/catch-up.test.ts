import { beforeAll, expect, test } from "vitest";
import { StripePayments } from "../../src/payments/stripe.ts";
import { TopUps } from "../../src/payments/top-ups.ts";
import { getTopUp } from "../../src/store/top-ups.ts";
import { FakeStripe, WEBHOOK_SECRET } from "../support/fake-stripe.ts";
import { createPayer } from "../support/payer.ts";
import { started } from "../support/started.ts";
import { useStore } from "../support/store.ts";
import { typeIds } from "../support/type-ids.ts";

const store = useStore();
let topUps: TopUps;
let nowMs = Date.now();

const stripe = started(() => FakeStripe.start());
beforeAll(() => {
  const settings = { secretKey: "sk_test_x", webhookSecret: WEBHOOK_SECRET, api: new URL(stripe.url) };
  topUps = new TopUps({
    database: store.database,
    ids: typeIds,
    provider: new StripePayments(settings, "vx"),
    minMicros: 1n,
    maxMicros: 1_000_000_000n,
    returnUrl: "https://app.example/",
    now: () => nowMs,
    onAlert: () => undefined,
  });
});

async function create() {
  const { accountId } = await createPayer(store.database, 0n);
  return await topUps.create({
    accountId,
    amountMicros: 5_000_000n,
    returnUrl: "",
    idempotencyKey: "order-1",
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
  const repeated = { accountId, amountMicros: 5_000_000n, returnUrl: "", idempotencyKey: "order-1" };
  expect(await topUps.create(repeated)).toMatchObject({ id, page_id: null });
  expect(await poll()).toBe("expired");
});
