import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { sendJson } from "../rest/send-json.ts";
import { OPERATOR_TOKEN, startTestApp } from "../support/app.ts";
import { FakeStripe, type StripeEvent } from "../support/fake-stripe.ts";
import { createTestKey, type TestKey } from "../support/fixtures.ts";
import { type Metered, startMetered } from "../support/metered.ts";
import { bearer } from "../support/protocols.ts";

let stripe: FakeStripe;
let metered: Metered;
let key: TestKey;

beforeAll(async () => {
  stripe = await FakeStripe.start();
  metered = await startMetered({ servers: 2, env: { ...stripe.env, VX_PUBLIC_URL: "https://api.example" } });
});
beforeEach(async () => {
  const { accountId } = await metered.payer(0n);
  key = await createTestKey(metered.operator, { accountId, scopes: ["read", "billing"] });
});
afterEach(() => {
  stripe.before = () => undefined;
  stripe.losesAnswer = () => false;
});
afterAll(async () => {
  await metered.stop();
  await stripe.stop();
});

type TopUp = {
  readonly id: string;
  readonly state: string;
  readonly url: string;
  readonly receipt_url: string;
  readonly refunded_micros: number;
  readonly disputed_micros: number;
};

const send = (verb: string, path: string, body?: unknown, headers: Record<string, string> = {}) =>
  sendJson(metered.app.url, { verb, path, secret: key.secret, headers, ...(body === undefined ? {} : { body }) });

async function create(amountMicros = 25_000_000, headers: Record<string, string> = {}): Promise<TopUp> {
  const { status, body } = await send("POST", "/v1/topups", { amount_micros: amountMicros }, headers);
  expect(status, JSON.stringify(body)).toBe(200);
  return (body as { topup: TopUp }).topup;
}

async function read({ id }: Pick<TopUp, "id">): Promise<TopUp> {
  const { body } = await send("GET", `/v1/topups/${id}`);
  return (body as { topup: TopUp }).topup;
}

async function account() {
  const { body } = await send("GET", "/v1/account");
  return body as { balance_micros: number; owed_micros: number; top_up_url: string };
}

async function entries(): Promise<[kind: string, micros: number][]> {
  const { body } = await send("GET", "/v1/ledger");
  const rows = (body as { entries: { kind: string; amount_micros: number }[] }).entries;
  return rows.map(({ kind, amount_micros: micros }): [string, number] => [kind, micros]).reverse();
}

async function eventTypes(): Promise<string[]> {
  const { body } = await send("GET", "/v1/events?types=topup.paid,topup.failed,topup.expired,topup.refunded,topup.disputed");
  return (body as { events: { type: string }[] }).events.map(({ type }) => type);
}

/** Delivers to both servers in turn. */
async function deliver(events: readonly StripeEvent[], expected = 200): Promise<void> {
  for (const [i, event] of events.entries()) {
    expect(await stripe.deliver(event, metered.apps[i % 2]?.url ?? ""), event.type).toBe(expected);
  }
}

/** What the poller does, without its pause. */
async function poll(): Promise<void> {
  await metered.app.database.owner`
    UPDATE vx.topups SET next_poll_at = now() WHERE account_id = ${key.accountId} AND next_poll_at IS NOT NULL`;
}

const alerts = () => metered.app.logText() + (metered.apps[1]?.logText() ?? "");

describe("creating", () => {
  test("returns a page with the amount, the currency and the account", async () => {
    const topUp = await create();
    const session = stripe.sessionOf(topUp.id);
    expect(topUp).toMatchObject({ state: "pending", url: session.url, amount_micros: 25_000_000, amount: "$25.00" });
    expect(session).toMatchObject({
      amount_total: 2_500,
      currency: "usd",
      metadata: { vx_topup: topUp.id, vx_account: key.accountId },
      intentMetadata: { vx_topup: topUp.id, vx_account: key.accountId },
    });
    expect((await account()).top_up_url).toBe("https://api.example/account");
    const { body } = await send("GET", "/v1/topups");
    expect(body).toEqual({ topups: [topUp], next_page_token: "" });
  });

  test.each([
    [4_990_000, /must be from 5000000 \(\$5\.00\) to 1000000000 \(\$1000\.00\)/],
    [1_000_010_000, /must be from/],
    [5_000_001, /must be a multiple of 10000/],
  ])("an amount of %i micros is refused", async (micros, message) => {
    const { status, body } = await send("POST", "/v1/topups", { amount_micros: micros });
    expect(status).toBe(400);
    expect(body).toMatchObject({ error: { param: "amount_micros", message: expect.stringMatching(message) } });
  });

  test.each(["http://app.example/", "javascript:alert(1)", "app.example", "//app.example"])(
    "the return address %s is refused",
    async (returnUrl) => {
      const { status, body } = await send("POST", "/v1/topups", { amount_micros: 5_000_000, return_url: returnUrl });
      expect({ status, body }).toMatchObject({ status: 400, body: { error: { param: "return_url" } } });
    },
  );

  test("needs the scope billing, and an account sees only its own top-ups", async () => {
    const topUp = await create();
    const { secret } = await createTestKey(metered.operator, { accountId: key.accountId, scopes: ["read"] });
    const narrow = await sendJson(metered.app.url, { verb: "GET", path: "/v1/topups", secret });
    expect(narrow.status).toBe(403);
    const other = await createTestKey(metered.operator, { scopes: ["billing"] });
    const path = `/v1/topups/${topUp.id}`;
    expect((await sendJson(metered.app.url, { verb: "GET", path, secret: other.secret })).status).toBe(404);
  });

  test("an idempotency key creates one top-up with one page, and refuses another amount", async () => {
    const header = { "idempotency-key": "order-1" };
    const all = await Promise.all(Array.from({ length: 5 }, () => create(5_000_000, header)));
    expect(new Set(all.map(({ id, url }) => `${id} ${url}`)).size).toBe(1);
    const other = await send("POST", "/v1/topups", { amount_micros: 6_000_000 }, header);
    expect(other.status).toBe(422);
  });

  test("a repetition at a server with another default address continues with the first one; a sent address is compared", async () => {
    const env = { ...stripe.env, VX_MODELS: metered.modelsFile, VX_PUBLIC_URL: "https://other.example" };
    const { database } = metered.app;
    const other = await startTestApp({ env, database });
    const sendTo = (url: string, body: Record<string, unknown>) =>
      sendJson(url, {
        verb: "POST",
        path: "/v1/topups",
        secret: key.secret,
        headers: { "idempotency-key": "order-3" },
        body: { amount_micros: 5_000_000, ...body },
      });
    stripe.before = () => 500;
    expect((await sendTo(metered.app.url, {})).status).toBe(503);
    stripe.before = () => undefined;
    const { status, body } = await sendTo(other.url, {});
    expect(status).toBe(200);
    const { topup } = body as { topup: TopUp };
    expect(stripe.sessionOf(topup.id).success_url).toMatch(/^https:\/\/api\.example\/account/);
    expect(await sendTo(metered.app.url, {})).toMatchObject({ status: 200, body: { topup } });
    const return_url = "https://api.example/account#/payments";
    expect((await sendTo(metered.app.url, { return_url })).status).toBe(422);
    await other.stop();
  });

  test("a repetition continues after Stripe failed, and after its answer was lost", async () => {
    const header = { "idempotency-key": "order-2" };
    const body = { amount_micros: 5_000_000 };
    stripe.before = () => 500;
    expect((await send("POST", "/v1/topups", body, header)).status).toBe(503);
    stripe.before = () => undefined;
    stripe.losesAnswer = (request) => request.startsWith("POST");
    expect((await send("POST", "/v1/topups", body, header)).status).toBe(503);
    stripe.losesAnswer = () => false;
    const topUp = await create(5_000_000, header);
    expect(topUp.url).toBe(stripe.sessionOf(topUp.id).url);
  });

  test("a request that Stripe refuses fails the top-up, so that it does not count as pending", async () => {
    stripe.before = () => 400;
    const { status, body } = await send("POST", "/v1/topups", { amount_micros: 5_000_000 });
    expect({ status, body }).toMatchObject({ status: 503, body: { error: { code: "unavailable" } } });
    const list = await send("GET", "/v1/topups");
    expect(list.body).toMatchObject({ topups: [{ state: "failed", url: "" }] });
  });

  test("a suspended account creates none, and still sees its own", async () => {
    const topUp = await create();
    await metered.operator.suspendAccount({ accountId: key.accountId, reason: "test" });
    expect((await send("POST", "/v1/topups", { amount_micros: 5_000_000 })).status).toBe(403);
    expect((await read(topUp)).state).toBe("pending");
  });
});

describe("a payment", () => {
  test("is credited once, however often and in whatever order its events arrive on both servers", async () => {
    const topUp = await create();
    const events = stripe.pay(topUp.id);
    await Promise.all(
      [...events, ...events, ...[...events].reverse()].map((event, i) => stripe.deliver(event, metered.apps[i % 2]?.url ?? "")),
    );
    await deliver(events);
    expect(await entries()).toEqual([["topup", 25_000_000]]);
    expect(await eventTypes()).toEqual(["topup.paid"]);
    const paid = await read(topUp);
    expect(paid).toMatchObject({ state: "paid", url: "", receipt_url: expect.stringContaining("receipts") });
    expect((await account()).balance_micros).toBe(25_000_000);
  });

  test("whose events never arrive is found by polling", async () => {
    const topUp = await create();
    stripe.pay(topUp.id);
    await poll();
    await expect.poll(async () => (await read(topUp)).state).toBe("paid");
    expect(await entries()).toEqual([["topup", 25_000_000]]);
  });

  test("by a slow method is credited when it arrives", async () => {
    const topUp = await create();
    await deliver(stripe.pay(topUp.id, {}, true));
    expect((await read(topUp)).state).toBe("pending");
    await deliver([stripe.arrive(topUp.id)]);
    expect((await read(topUp)).state).toBe("paid");
  });

  test("by a slow method that fails is an event, and a late success is credited too", async () => {
    const topUp = await create();
    stripe.pay(topUp.id, {}, true);
    await deliver([stripe.fail(topUp.id)]);
    expect((await read(topUp)).state).toBe("failed");
    await deliver([stripe.arrive(topUp.id)]);
    expect(await eventTypes()).toEqual(["topup.failed", "topup.paid"]);
    expect(alerts()).toContain(`"topup":"${topUp.id}","account_id":"${key.accountId}","reason":"late"`);
  });

  test("after the page expired is credited and told to operators", async () => {
    const topUp = await create();
    await deliver([stripe.expire(topUp.id)]);
    expect((await read(topUp)).state).toBe("expired");
    for (const event of stripe.pay(topUp.id)) await stripe.deliver(event, metered.app.url);
    expect(await eventTypes()).toEqual(["topup.expired", "topup.paid"]);
    const metrics = await fetch(`${metered.app.adminUrl}/metrics`, { headers: bearer(OPERATOR_TOKEN) });
    expect(await metrics.text()).toMatch(/^vx_payment_alerts_total\{reason="late"\} [1-9]/m);
  });

  test("into a suspended account is credited and told to operators", async () => {
    const topUp = await create();
    await metered.operator.suspendAccount({ accountId: key.accountId, reason: "test" });
    await deliver(stripe.pay(topUp.id));
    expect(await entries()).toEqual([["topup", 25_000_000]]);
    expect(alerts()).toContain(`"topup":"${topUp.id}","account_id":"${key.accountId}","reason":"suspended"`);
  });

  test.each([
    ["amount", { amount_received: 2_499 }],
    ["amount", { amount_received: 250_000 }],
    ["currency", { currency: "jpy" }],
    ["account", { metadata: { vx_topup: "", vx_account: "acct_01kam4xxa5fzsbw0pdmm2h60vq" } }],
  ])("with another %s is not credited; operators see it", async (problem, changes) => {
    const topUp = await create();
    const { metadata } = changes as { metadata?: object };
    await deliver(stripe.pay(topUp.id, { ...changes, ...(metadata && { metadata: { ...metadata, vx_topup: topUp.id } }) }));
    expect(await entries()).toEqual([]);
    expect((await read(topUp)).state).toBe("pending");
    const { topups } = await metered.operator.listTopUps({ onlyProblems: true });
    expect(topups.find(({ topup }) => topup?.id === topUp.id)).toMatchObject({ accountId: key.accountId, problem });
    expect(alerts()).toContain(`"topup":"${topUp.id}","account_id":"${key.accountId}","reason":"${problem}"`);
  });

  test("is listed with its account and its ledger entry, also by account, state and problem", async () => {
    const { accountId } = key;
    const [paid, refunded, other, pending] = [await create(), await create(), await create(), await create()];
    await deliver([...stripe.pay(paid.id), ...stripe.pay(refunded.id), stripe.refund(refunded.id, 2_500)]);
    await deliver(stripe.pay(other.id, { currency: "jpy" }));
    const list = async (request: { accountId?: string; state?: string; onlyProblems?: boolean }) =>
      (await metered.operator.listTopUps(request)).topups.filter((row) => row.accountId === accountId);
    const idsOf = async (...request: Parameters<typeof list>) => (await list(...request)).map(({ topup }) => topup?.id);
    for (const of of [{ accountId }, {}]) {
      expect(await idsOf(of)).toEqual([pending.id, other.id, refunded.id, paid.id]);
      expect(await idsOf({ ...of, state: "pending" })).toEqual([pending.id, other.id]);
      expect(await idsOf({ ...of, state: "refunded" })).toEqual([refunded.id]);
      expect(await idsOf({ ...of, onlyProblems: true })).toEqual([other.id]);
      expect(await idsOf({ ...of, state: "paid", onlyProblems: true })).toEqual([]);
    }
    const { entries } = await metered.operator.listLedgerEntries({ accountId, kind: "topup" });
    const { account } = await metered.operator.getAccount({ accountId });
    expect((await list({ state: "paid" }))[0]).toMatchObject({
      entryId: entries.find(({ reason }) => reason === `Top-up ${paid.id}`)?.id,
      accountName: account?.name,
    });
    expect((await list({ state: "pending" }))[0]).toMatchObject({ entryId: "" });
    await expect(list({ state: "lost" })).rejects.toThrow("state");
  });

  test("is credited after Stripe could not be asked, or the database did not answer, when the event is repeated", async () => {
    const topUp = await create();
    const events = stripe.pay(topUp.id);
    stripe.before = () => 500;
    await deliver(events, 503);
    stripe.before = () => undefined;
    const { owner } = metered.app.database;
    await owner`ALTER FUNCTION vx.apply_payment RENAME TO apply_payment_gone`;
    const [event] = events as [StripeEvent];
    expect(await stripe.deliver(event, metered.app.url)).toBeGreaterThanOrEqual(500);
    await owner`ALTER FUNCTION vx.apply_payment_gone RENAME TO apply_payment`;
    expect(await entries()).toEqual([]);
    await deliver(events);
    expect(await entries()).toEqual([["topup", 25_000_000]]);
  });
});

describe("an event", () => {
  test.each([
    ["with another secret", { secret: "whsec_of_somebody_else" }],
    ["that is six minutes old", { ageSeconds: 360 }],
    ["with a changed body", { body: '{"type":"checkout.session.completed"}' }],
  ])("%s is refused", async (_, delivery) => {
    const topUp = await create();
    const [event] = stripe.pay(topUp.id) as [StripeEvent];
    const before = stripe.requests.length;
    expect(await stripe.deliver(event, metered.app.url, delivery)).toBe(400);
    expect(stripe.requests.length).toBe(before);
    expect((await read(topUp)).state).toBe("pending");
  });

  test("without a signature is refused, and a large one is not read", async () => {
    const url = `${metered.app.url}/stripe/events`;
    expect((await fetch(url, { method: "POST", body: "{}" })).status).toBe(400);
    const headers = { "stripe-signature": "t=1,v1=00" };
    const large = { method: "POST", headers, body: "x".repeat(600_000) };
    expect((await fetch(url, large)).status).toBe(413);
    expect((await fetch(url)).status).toBe(405);
  });

  test.each(["t={now},v1=", "t={now},v1=,v1=", `t={now},v1=${"\u00e9".repeat(64)}`, "t=,v1=00", "v1=00", ",,,="])(
    "with the signature %s is refused",
    async (signature) => {
      const headers = { "stripe-signature": signature.replace("{now}", String(Math.floor(Date.now() / 1_000))) };
      const answer = await fetch(`${metered.app.url}/stripe/events`, { method: "POST", headers, body: "{}" });
      expect(answer.status).toBe(400);
    },
  );

  test.each([
    "",
    "{",
    "null",
    "[]",
    "1",
    "{}",
    '{"id":"evt_1","type":"charge.refunded"}',
    '{"id":"evt_1","type":"charge.refunded","data":{"object":null}}',
    '{"id":"evt_1","object":"v2.core.event","type":"charge.refunded"}',
  ])("that is signed and has the body %j is refused", async (body) => {
    expect(await stripe.deliver({ id: "", type: "", body }, metered.app.url)).toBe(400);
  });

  test("of another API version, whose object has other amounts, only names the payment", async () => {
    const topUp = await create();
    stripe.pay(topUp.id);
    const { id } = stripe.sessionOf(topUp.id);
    const object = { id, client_reference_id: topUp.id, amount_total: 9_999_999, currency: "kwd" };
    await deliver([stripe.emitOther("checkout.session.completed", object, { api_version: "2019-02-19" })]);
    expect(await entries()).toEqual([["topup", 25_000_000]]);
  });

  test("about an unpaid page that says it is paid credits nothing", async () => {
    const topUp = await create();
    const { id } = stripe.sessionOf(topUp.id);
    const object = { id, client_reference_id: topUp.id, payment_status: "paid", amount_total: 2_500 };
    await deliver([stripe.emitOther("checkout.session.completed", object)]);
    expect(await entries()).toEqual([]);
    expect((await read(topUp)).state).toBe("pending");
  });

  test("that names another top-up than the page does credits nothing", async () => {
    const [paid, other] = [await create(), await create()];
    stripe.pay(paid.id);
    const { id } = stripe.sessionOf(paid.id);
    await deliver([stripe.emitOther("checkout.session.completed", { id, client_reference_id: other.id })]);
    expect(await entries()).toEqual([]);
  });

  test.each([
    ["of a connected account", "checkout.session.completed", { account: "acct_other" }],
    ["of another type", "customer.created", {}],
  ])("%s is accepted and ignored", async (_, type, fields) => {
    const topUp = await create();
    stripe.pay(topUp.id);
    const { id } = stripe.sessionOf(topUp.id);
    await deliver([stripe.emitOther(type, { id, client_reference_id: topUp.id }, fields)]);
    expect(await entries()).toEqual([]);
  });

  test.each(["checkout.session.completed", "charge.refunded", "charge.dispute.created"])(
    "%s about a payment of another product is accepted and ignored",
    async (type) => {
      await deliver([stripe.emitOther(type, { id: "cs_test_other", payment_intent: "pi_other" })]);
    },
  );

  test("of a top-up that does not exist here is accepted and ignored", async () => {
    const object = { id: "cs_test_other", client_reference_id: "top_01kb0zq5p9e8tvm4x2c7h3j6rq" };
    await deliver([stripe.emitOther("checkout.session.completed", object)]);
  });
});

describe("after the payment", () => {
  let topUp: TopUp;
  beforeEach(async () => {
    topUp = await create(10_000_000);
    await deliver(stripe.pay(topUp.id));
  });

  test("refunds take back their amounts once, in whatever order their events arrive", async () => {
    const events = [stripe.refund(topUp.id, 300), stripe.refund(topUp.id, 200)];
    await deliver([...events].reverse());
    await deliver([...events, ...events]);
    expect(await entries()).toEqual([
      ["topup", 10_000_000],
      ["refund", -5_000_000],
    ]);
    expect(await read(topUp)).toMatchObject({ state: "paid", refunded_micros: 5_000_000 });
    await deliver([stripe.refund(topUp.id, 500)]);
    expect(await read(topUp)).toMatchObject({ state: "refunded", refunded_micros: 10_000_000 });
    expect((await account()).balance_micros).toBe(0);
  });

  test("a lost dispute stays withdrawn, a won one is credited back", async () => {
    await deliver([stripe.dispute(topUp.id, 1_000)]);
    expect(await read(topUp)).toMatchObject({ state: "disputed", disputed_micros: 10_000_000 });
    expect((await account()).balance_micros).toBe(0);
    await deliver([stripe.closeDispute(topUp.id, "lost")]);
    expect((await account()).balance_micros).toBe(0);
    await deliver([stripe.closeDispute(topUp.id, "won")]);
    expect(await read(topUp)).toMatchObject({ state: "paid", disputed_micros: 0 });
    expect((await account()).balance_micros).toBe(10_000_000);
    expect(await eventTypes()).toEqual(["topup.paid", "topup.disputed", "topup.disputed"]);
  });

  test("a refund beyond the balance is owed: calls fail with payment_reversed until a top-up paid it", async () => {
    const { accountId } = key;
    const adjustment = { accountId, amountMicros: -4_000_000n, reason: "used", idempotencyKey: "used" };
    await metered.operator.adjustAccount(adjustment);
    await deliver([stripe.refund(topUp.id, 1_000)]);
    expect(await account()).toMatchObject({ balance_micros: 0, owed_micros: 4_000_000 });
    const { secret } = await createTestKey(metered.operator, { accountId, scopes: ["generate"] });
    const generate = () =>
      sendJson(metered.app.url, {
        verb: "POST",
        path: "/v1/generate",
        secret,
        body: { model: "sandbox", messages: [{ role: "user", content: "hi" }], max_tokens: 10 },
      });
    const refused = await generate();
    expect(refused).toMatchObject({
      status: 402,
      body: {
        error: {
          code: "payment_reversed",
          owed_micros: 4_000_000,
          available_micros: 0,
          top_up_url: "https://api.example/account",
        },
      },
    });
    const another = await create(10_000_000);
    await deliver(stripe.pay(another.id));
    expect(await account()).toMatchObject({ balance_micros: 6_000_000, owed_micros: 0 });
    expect((await generate()).status).toBe(200);
  });
});
