import { afterAll, beforeAll, expect, test } from "vitest";
import { Customer, type CustomerApp, startCustomerApp, tokenOf } from "../support/customer.ts";
import { FakeStripe } from "../support/fake-stripe.ts";
import { operatorOf } from "../support/fixtures.ts";

let stripe: FakeStripe;
let app: CustomerApp;
let owner: Customer;
let accountId: string;

beforeAll(async () => {
  stripe = await FakeStripe.start();
  app = await startCustomerApp({ ...stripe.env, VX_SIGN_UP: "open" });
  ({ customer: owner, accountId } = await Customer.signUp(app, "owner@example.com"));
});
afterAll(async () => {
  await app.stop();
  await stripe.stop();
});

test("each call opens another page of the customer portal, for one customer of the account", async () => {
  const before = await tables();
  const urls = [];
  for (let i = 0; i < 2; i++) urls.push((await owner.do("CreateBillingPage", {}, accountId)).url);
  expect(urls).toEqual(stripe.portals.map(({ url }) => url));
  expect(new Set(urls).size).toBe(2);
  expect(new Set(stripe.portals.map(({ customer }) => customer)).size).toBe(1);
  expect(stripe.portals[0]?.return_url).toMatch(/^http:.*\/account#\/payments$/);
  // The customer is stored; the page is not.
  const stored = await tables();
  expect([before, stored.map((row) => row.customer_id)]).toEqual([[], [stripe.portals[0]?.customer]]);
  expect(JSON.stringify(stored)).not.toContain("billing.stripe.com");
});

async function tables() {
  return await app.database.owner`SELECT * FROM vx.auto_topups WHERE account_id = ${accountId}`;
}

test("automatic top-ups that were never set stay off, and can be started afterwards", async () => {
  await owner.do("CreateBillingPage", {}, accountId);
  expect(await owner.do("GetAutoTopUp", {}, accountId)).toMatchObject({ autoTopup: { state: "off" } });
  const settings = { enabled: true, thresholdMicros: 1e7, amountMicros: 2e7, monthlyMaxMicros: 1e8 };
  const { autoTopup } = await owner.do("PutAutoTopUp", settings, accountId);
  expect(autoTopup).toMatchObject({ state: "needs_payment_method" });
  expect(stripe.setupOf(accountId).customer).toBe(stripe.portals[0]?.customer);
});

test.each([
  ["viewer", false],
  ["developer", false],
  ["billing", true],
])("a member with the role %s: %s", async (role, isAllowed) => {
  const { url } = await owner.do("CreateInvitation", { role }, accountId);
  const member = await Customer.signIn(app, `${role}@example.com`);
  await member.do("AcceptInvitation", { token: tokenOf(url) });
  const before = stripe.portals.length;
  const { status } = await member.call("CreateBillingPage", {}, accountId);
  expect(status).toBe(isAllowed ? 200 : 403);
  expect(stripe.portals.length).toBe(isAllowed ? before + 1 : before);
});

test("a suspended account still manages its cards", async () => {
  await operatorOf(app).suspendAccount({ accountId, reason: "test" });
  expect((await owner.do("CreateBillingPage", {}, accountId)).url).toMatch(/^https:/);
  await operatorOf(app).resumeAccount({ accountId, reason: "test" });
});

test("a portal that Stripe refuses, because it is not set up, is an error that says what to do", async () => {
  stripe.before = (request) => (request.includes("billing_portal") ? 400 : undefined);
  try {
    expect(await owner.fail("CreateBillingPage", {}, accountId)).toBe("503 unavailable");
  } finally {
    stripe.before = () => undefined;
  }
});

test("an account gets ten pages per minute, so that it cannot use up the rate limit at Stripe", async () => {
  const { customer, accountId: ownId } = await Customer.signUp(app, "busy@example.com");
  const before = stripe.portals.length;
  const outcomes = [];
  // The calls may be of two minutes.
  while (outcomes.length < 21 && (outcomes.at(-1) ?? "200 ") === "200 ")
    outcomes.push(await customer.fail("CreateBillingPage", {}, ownId));
  expect(outcomes.at(-1)).toBe("429 rate_limit_exceeded");
  expect(outcomes.length).toBeGreaterThan(10);
  expect(stripe.portals.length - before).toBe(outcomes.length - 1);
  expect((await owner.do("CreateBillingPage", {}, accountId)).url).toMatch(/^https:/);
});
