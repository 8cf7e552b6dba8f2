import { randomUUID } from "node:crypto";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { Customer, type CustomerApp, startCustomerApp, tokenOf, untilWaiting } from "../support/customer.ts";
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

test("the activity has each page, and nothing is created at Stripe for a member whose role was taken meanwhile", async () => {
  const { owner: sql } = app.database;
  const { activity } = await owner.do("ListActivity", { method: "CreateBillingPage", pageSize: 1 }, accountId);
  expect(activity).toMatchObject([{ email: "billing@example.com", target: accountId, outcome: "ok" }]);
  const { customer, accountId: newId } = await Customer.signUp(app, "new@example.com");
  const { personId } = await customer.do("GetSession");
  const { call } = await sql.begin(async (transaction) => {
    await transaction`SELECT FROM vx.lanes WHERE lane = vx.lane_of(${newId}) FOR UPDATE`;
    const call = customer.fail("CreateBillingPage", {}, newId);
    await untilWaiting(app, "log_opened_page");
    await transaction`UPDATE vx.members SET role = 'viewer' WHERE person_id = ${personId as string}`;
    return { call };
  });
  expect(await call).toBe("403 insufficient_role");
  expect(stripe.customersOf(newId)).toEqual([]);
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

describe("a page that is requested while the account closes leaves no customer at Stripe", () => {
  let leaving: Customer;
  let leavingId: string;

  beforeEach(async () => {
    ({ customer: leaving, accountId: leavingId } = await Customer.signUp(app, `${randomUUID()}@example.com`));
  });
  afterEach(() => {
    stripe.before = () => undefined;
  });

  const close = () => operatorOf(app).closeAccount({ accountId: leavingId, reason: "left", balance: "written_off" });
  /** Closes the account when Stripe gets the request, before it answers. */
  const closeAt = (request: string) => {
    let isClosing = false;
    stripe.before = async (seen) => {
      if (seen !== request || isClosing) return undefined;
      isClosing = true;
      expect(await close()).toMatchObject({ closed: true });
      return undefined;
    };
  };
  const requestPage = () => leaving.fail("CreateBillingPage", {}, leavingId);
  const stored = () => app.database.owner`
    SELECT FROM vx.auto_topups WHERE account_id = ${leavingId} AND customer_id IS NOT NULL`;

  test("if the first customer is created after the account has closed", async () => {
    closeAt("POST /v1/customers");
    expect(await requestPage()).toBe("400 invalid_argument");
    expect(stripe.customersOf(leavingId)).toEqual([]);
    expect(await stored()).toHaveLength(0);
  });

  test("if a customer replaces the one that the closing deleted", async () => {
    expect(await requestPage()).toBe("200 ");
    expect(stripe.customersOf(leavingId)).toHaveLength(1);
    closeAt("POST /v1/billing_portal/sessions");
    expect(await requestPage()).toBe("400 invalid_argument");
    expect(stripe.customersOf(leavingId)).toEqual([]);
    expect(await stored()).toHaveLength(0);
  });

  test("if the customer is stored before the last step of the closing", async () => {
    const { owner } = app.database;
    let closing: ReturnType<typeof close> | undefined;
    await owner.begin(async (sql) => {
      await sql`SELECT FROM vx.person_accounts WHERE account_id = ${leavingId} FOR UPDATE`;
      closing = close();
      await vi.waitFor(async () =>
        expect(await owner`SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query ~ 'unlink_person'`).toHaveLength(
          1,
        ),
      );
      expect(await requestPage()).toBe("200 ");
      expect(stripe.customersOf(leavingId)).toHaveLength(1);
    });
    expect(await closing).toMatchObject({ closed: true });
    expect(stripe.customersOf(leavingId)).toEqual([]);
  });

  test("if Stripe does not delete it at first, after closing again", async () => {
    closeAt("POST /v1/customers");
    const atClosing = stripe.before;
    stripe.before = (seen) => (seen.startsWith("DELETE /v1/customers/") ? 500 : atClosing(seen));
    expect(await requestPage()).toBe("503 unavailable");
    expect(stripe.customersOf(leavingId)).toHaveLength(1);
    await expect(close()).rejects.toThrow(/Repeat the call later/);
    stripe.before = () => undefined;
    expect(await close()).toMatchObject({ closed: true });
    expect(stripe.customersOf(leavingId)).toEqual([]);
    expect(await stored()).toHaveLength(0);
  });
});
