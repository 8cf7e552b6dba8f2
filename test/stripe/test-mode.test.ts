import { randomUUID } from "node:crypto";
import { afterAll, describe, expect, test } from "vitest";
import { StripePayments } from "../../src/payments/stripe/stripe-payments.ts";
import { FakeStripe } from "../support/fake-stripe.ts";

const KEY = process.env.VX_TEST_STRIPE_KEY;

if (KEY === undefined) console.error("SKIPPED: no request is sent to Stripe: VX_TEST_STRIPE_KEY is not set");
if (KEY !== undefined && !/^[sr]k_test_/.test(KEY))
  throw new Error("VX_TEST_STRIPE_KEY: must be a key of Stripe's test mode, sk_test_… or rk_test_…");

/** A payment method of Stripe's test mode that is always paid. */
const PAID_CARD = "pm_card_visa";
const AMOUNT = 25_000_000n;

const fake = await FakeStripe.start();
afterAll(() => fake.stop());

/** The fake that other tests use must do what Stripe does. */
const providers = [
  { name: "the fake", secretKey: "sk_test_fake", api: new URL(fake.url) },
  { name: "Stripe's test mode", secretKey: KEY, api: undefined },
].filter(({ secretKey }) => secretKey !== undefined);

describe.each(providers)("$name", { timeout: 60_000 }, ({ secretKey = "", api }) => {
  const payments = new StripePayments({ secretKey, webhookSecret: "whsec_x", api, invoices: true }, "vx");
  const order = (topUpId: string) => ({
    topUpId,
    // Each test deletes its customer, and a repetition for the same account within a day would get that one.
    accountId: `acct_of_${topUpId}`,
    amountMicros: AMOUNT,
    currency: "usd",
  });

  test("creates a page, finds it unpaid, and ends it", async () => {
    const topUpId = `top_test_${randomUUID()}`;
    const customerId = await payments.createCustomer(order(topUpId).accountId);
    const returnUrl = "https://app.example/billing";
    const page = await payments.createPage({ ...order(topUpId), returnUrl, customerId });
    expect(page.url).toMatch(/^https?:/);
    const reference = { pageId: page.id };
    expect(await payments.lookUp(reference)).toMatchObject({ topUpId, seen: { status: "open" } });
    expect(await payments.expirePage(page.id)).toBe(true);
    expect(await payments.lookUp(reference)).toMatchObject({ topUpId, seen: { status: "expired" } });
    await payments.deleteCustomer(customerId);
  });

  test("pays with a stored method, and lists events that were not delivered", async () => {
    const topUpId = `top_test_${randomUUID()}`;
    const { accountId } = order(topUpId);
    const customerId = await payments.createCustomer(accountId);
    const returnUrl = "https://app.example/billing";
    const page = await payments.createMethodPage({ accountId, currency: "usd", customerId, returnUrl });
    expect(await payments.lookUpMethodPage(page.id)).toMatchObject({ accountId, customerId, isOver: false });
    const paymentId = await payments.createPayment({ ...order(topUpId), customerId, methodId: PAID_CARD });
    expect(await payments.confirmPayment(paymentId)).toBe(true);
    expect(await payments.lookUp({ paymentId })).toMatchObject({
      topUpId,
      seen: { status: "paid", amountMicros: AMOUNT, refundedMicros: 0n, failure: "" },
    });
    expect(await payments.undelivered()).toBeInstanceOf(Array);
    await payments.deleteCustomer(customerId);
  });
});
