import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { sendJson } from "../rest/send-json.ts";
import { FakeStripe, type StripeEvent } from "../support/fake-stripe.ts";
import { createTestKey, type TestKey } from "../support/fixtures.ts";
import { type Metered, startMetered } from "../support/metered.ts";

let stripe: FakeStripe;
let metered: Metered;
let key: TestKey;

beforeAll(async () => {
  stripe = await FakeStripe.start();
  metered = await startMetered({ env: { ...stripe.env, VX_STRIPE_INVOICES: "on" } });
});
beforeEach(async () => {
  const { accountId } = await metered.payer(0n);
  key = await createTestKey(metered.operator, { accountId, scopes: ["read", "billing"] });
});
afterAll(async () => {
  await metered.stop();
  await stripe.stop();
});

type TopUp = { readonly id: string; readonly state: string; readonly invoice_url: string };

async function send(verb: string, path: string, body?: object): Promise<TopUp> {
  const request = { verb, path, secret: key.secret, ...(body && { body }) };
  const answer = await sendJson(metered.app.url, request);
  expect(answer.status, JSON.stringify(answer.body)).toBe(200);
  return (answer.body as { topup: TopUp }).topup;
}

const create = () => send("POST", "/v1/topups", { amount_micros: 25_000_000 });
const read = ({ id }: TopUp) => send("GET", `/v1/topups/${id}`);

async function deliver(...events: StripeEvent[]): Promise<void> {
  for (const event of events) expect(await stripe.deliver(event, metered.app.url)).toBe(200);
}

describe("with VX_STRIPE_INVOICES, a top-up", () => {
  test("has the invoice of its payment, for the customer of the account", async () => {
    const topUp = await create();
    expect(topUp.invoice_url).toBe("");
    const events = stripe.pay(topUp.id);
    stripe.issueInvoice(topUp.id);
    await deliver(...events);
    const { customer, invoice } = stripe.sessionOf(topUp.id);
    expect(customer).toMatch(/^cus_/);
    expect(await read(topUp)).toMatchObject({ state: "paid", invoice_url: invoice?.hosted_invoice_url });
    expect(stripe.sessionOf((await create()).id).customer).toBe(customer);
  });

  test("gets an invoice that is created after the events of the payment, and keeps it", async () => {
    const topUp = await create();
    const events = stripe.pay(topUp.id);
    await deliver(...events);
    expect(await read(topUp)).toMatchObject({ state: "paid", invoice_url: "" });
    await deliver(stripe.issueInvoice(topUp.id));
    const invoiceUrl = stripe.sessionOf(topUp.id).invoice?.hosted_invoice_url;
    expect(invoiceUrl).toMatch(/^https:/);
    expect((await read(topUp)).invoice_url).toBe(invoiceUrl);
    // The event payment_intent.succeeded leads to a payment, which does not name its invoice.
    await deliver(...events.slice(1));
    expect((await read(topUp)).invoice_url).toBe(invoiceUrl);
  });

  test("has a new customer after the one of the account was deleted at Stripe", async () => {
    const customerOf = ({ id }: TopUp) => stripe.sessionOf(id).customer as string;
    const deleted = customerOf(await create());
    stripe.deletedCustomers.add(deleted);
    const customer = customerOf(await create());
    expect(customer).toMatch(/^cus_/);
    expect(customer).not.toBe(deleted);
    expect(customerOf(await create())).toBe(customer);
  });

  test("is not affected by invoices of other products in the same account at Stripe", async () => {
    const topUp = await create();
    await deliver(stripe.emitOther("invoice.paid", { id: "in_1", metadata: {}, payment_intent: "pi_1" }));
    expect((await read(topUp)).state).toBe("pending");
  });

  test("of an account that closes loses the link, and the customer is deleted at Stripe", async () => {
    const topUp = await create();
    const events = stripe.pay(topUp.id);
    stripe.issueInvoice(topUp.id);
    await deliver(...events);
    const request = { accountId: key.accountId, reason: "left", balance: "refunded" };
    await metered.operator.closeAccount(request);
    expect(stripe.deletedCustomers).toContain(stripe.sessionOf(topUp.id).customer);
    const rows = await metered.app.database.owner`SELECT invoice_url FROM vx.topups WHERE id = ${topUp.id}`;
    expect(rows).toEqual([{ invoice_url: "" }]);
  });
});
