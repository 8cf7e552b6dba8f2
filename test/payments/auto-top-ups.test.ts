import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from "vitest";
import { vx } from "../cli/support.ts";
import { sendJson } from "../rest/send-json.ts";
import { OPERATOR_TOKEN } from "../support/app.ts";
import { FakeStripe } from "../support/fake-stripe.ts";
import { replyWhen } from "../support/fake-upstreams/behaviours.ts";
import { createTestKey, type TestKey } from "../support/fixtures.ts";
import { HELD_MICROS, type Metered, MODEL, startMetered } from "../support/metered.ts";

let stripe: FakeStripe;
let metered: Metered;
let key: TestKey;

beforeAll(async () => {
  stripe = await FakeStripe.start();
  metered = await startMetered({ servers: 2, env: { ...stripe.env, VX_PUBLIC_URL: "https://api.example" } });
});
beforeEach(async () => {
  const { accountId } = await metered.payer(10_000_000n);
  key = await createTestKey(metered.operator, { accountId, scopes: ["read", "billing", "generate"] });
});
afterEach(() => {
  stripe.before = () => undefined;
  stripe.losesAnswer = () => false;
  stripe.decide = () => "succeeded";
});
afterAll(async () => {
  await metered.stop();
  await stripe.stop();
});

const AUTO = "/v1/topups/auto";
const SETTINGS = { enabled: true, thresholdMicros: 5_000_000n, amountMicros: 10_000_000n, monthlyMaxMicros: 100_000_000n };

const send = (verb: string, path: string, body?: unknown, secret = key.secret) =>
  sendJson(metered.app.url, { verb, path, secret, ...(body === undefined ? {} : { body }) });

const start = async (changes: Partial<typeof SETTINGS> = {}) =>
  (await metered.operator.putAutoTopUp({ accountId: key.accountId, ...SETTINGS, ...changes })).autoTopup;

/** The settings of a request that replaces the stored card. */
const REPLACED = {
  enabled: true,
  threshold_micros: 5_000_000,
  amount_micros: 10_000_000,
  monthly_max_micros: 100_000_000,
  replace_payment_method: true,
};

async function auto() {
  const { status, body } = await send("GET", AUTO);
  expect(status, JSON.stringify(body)).toBe(200);
  return body as { state: string; payment_method: string; setup_url: string; failures: number };
}

/** Started, with a stored card. */
async function ready(changes: Partial<typeof SETTINGS> = {}): Promise<void> {
  await start(changes);
  expect(await stripe.deliver(stripe.storeCard(stripe.setupOf(key.accountId)), metered.app.url)).toBe(200);
}

/** Spends most of the balance, and one call more. */
async function spend(): Promise<void> {
  const adjustment = { accountId: key.accountId, amountMicros: -9_000_000n, reason: "used" };
  await metered.operator.adjustAccount({ ...adjustment, idempotencyKey: crypto.randomUUID() });
  await generate();
}

const generate = () =>
  send("POST", "/v1/generate", { model: "sandbox", messages: [{ role: "user", content: "hi" }], max_tokens: 10 });

type TopUp = { id: string; state: string; automatic: boolean; failure: string };

async function topUps(): Promise<TopUp[]> {
  const { body } = await send("GET", "/v1/topups");
  return (body as { topups: TopUp[] }).topups;
}

const balance = async () => ((await send("GET", "/v1/account")).body as { balance_micros: number }).balance_micros;

async function events(): Promise<{ type: string; data: { reason?: string } }[]> {
  const { body } = await send("GET", "/v1/events?types=topup.paid,topup.failed,topup.auto_failed,topup.auto_disabled");
  return (body as { events: { type: string; data: { reason?: string } }[] }).events;
}

const until = (state: string) =>
  expect.poll(async () => (await topUps()).map((one) => one.state), { interval: 150 }).toContain(state);

test("an operator starts them, the customer stores a card, and a charge below the threshold is paid once by one of two servers", async () => {
  expect(await auto()).toMatchObject({ enabled: false, state: "off", setup_url: "" });
  const started = await start();
  const setup = stripe.setupOf(key.accountId);
  expect(started).toMatchObject({ state: "needs_payment_method", setupUrl: setup.url });
  expect(await auto()).toMatchObject({ state: "needs_payment_method", setup_url: setup.url });
  expect(await stripe.deliver(stripe.storeCard(setup), metered.app.url)).toBe(200);
  expect(await auto()).toMatchObject({
    enabled: true,
    threshold_micros: 5_000_000,
    amount_micros: 10_000_000,
    monthly_max_micros: 100_000_000,
    state: "ready",
    month_micros: 0,
    payment_method: "visa •••• 4242, expires 03/2031",
    setup_url: "",
    failures: 0,
    last_failure: "",
    topup_id: "",
  });
  await spend();
  await until("paid");
  const [topUp] = (await topUps()) as [TopUp];
  expect(topUp).toMatchObject({ automatic: true, failure: "" });
  expect(stripe.chargeOf(topUp.id)).toMatchObject({ amount: 1_000, currency: "usd", payment_method: "pm_4242" });
  expect(stripe.charges.get(topUp.id)).toBe(1);
  expect(await balance()).toBeGreaterThan(10_000_000);
  expect(await auto()).toMatchObject({ state: "ready", month_micros: 10_000_000 });
  expect(await events()).toMatchObject([{ type: "topup.paid", data: { automatic: true } }]);
});

test("a card whose page was used while no event arrived is found by polling", async () => {
  await start();
  stripe.storeCard(stripe.setupOf(key.accountId));
  await metered.app.database.owner`
    UPDATE vx.auto_topups SET due_at = now() WHERE account_id = ${key.accountId}`;
  await expect.poll(async () => (await auto()).state).toBe("ready");
});

test("a page that expired is replaced, and another card replaces the stored one", async () => {
  await start();
  const first = stripe.setupOf(key.accountId);
  expect((await start())?.setupUrl).toBe(first.url);
  await stripe.deliver(stripe.expireSetup(first), metered.app.url);
  expect((await auto()).setup_url).toBe("");
  await start();
  const second = stripe.setupOf(key.accountId);
  expect(second.customer).toBe(first.customer);
  await stripe.deliver(stripe.storeCard(second), metered.app.url);
  const replaced = await send("PUT", AUTO, REPLACED);
  expect(replaced).toMatchObject({ status: 200, body: { state: "ready", payment_method: /4242/ } });
  await stripe.deliver(stripe.storeCard(stripe.setupOf(key.accountId), "4444"), metered.app.url);
  expect((await auto()).payment_method).toContain("4444");
});

test("a customer who was deleted at Stripe is replaced with the next page", async () => {
  await ready();
  const { customer } = stripe.setupOf(key.accountId);
  stripe.deletedCustomers.add(customer);
  await spend();
  await until("failed");
  await send("PUT", AUTO, REPLACED);
  const replaced = stripe.setupOf(key.accountId);
  expect(replaced.customer).not.toBe(customer);
  await stripe.deliver(stripe.storeCard(replaced, "4444"), metered.app.url);
  await until("paid");
});

test("a declined payment is cancelled and told; after three in a row they are off until they are started again", async () => {
  const codes = ["insufficient_funds", "authentication_required", "expired_card"];
  await ready();
  for (const [i, code] of codes.entries()) {
    stripe.decide = () => code;
    if (i === 0) await spend();
    else expect((await generate()).status).toBe(200);
    await expect.poll(async () => (await auto()).failures).toBe(i + 1);
  }
  const all = (await topUps()).toReversed();
  expect(all.map(({ state, failure }) => `${state} ${failure}`)).toEqual(codes.map((code) => `failed ${code}`));
  for (const { id } of all) expect(stripe.chargeOf(id).status).toBe("canceled");
  expect(await auto()).toMatchObject({ enabled: false, state: "off", last_failure: "expired_card" });
  expect((await events()).map(({ type, data }) => `${type} ${data.reason}`)).toEqual([
    ...codes.map((code) => `topup.auto_failed ${code}`),
    "topup.auto_disabled failures",
  ]);
  expect((await generate()).status).toBe(200);
  expect(await topUps()).toHaveLength(3);
});

test("running calls that hold the balance start one only when a call is refused", async () => {
  // The bytes of a call need 46 and its tokens 29. One call runs, so 29 are free.
  const payer = await metered.payer(HELD_MICROS + 29n);
  key = await createTestKey(metered.operator, { accountId: payer.accountId, scopes: ["read", "billing", "generate"] });
  await ready({ thresholdMicros: 30n });
  const gate = Promise.withResolvers<void>();
  const call = () =>
    send("POST", "/v1/generate", {
      model: MODEL,
      messages: [{ role: "user", content: "Say hello to the world" }],
      max_tokens: 10,
    });
  const before = metered.upstream.calls.length;
  metered.upstream.next(replyWhen(gate.promise), replyWhen(gate.promise));
  const first = call();
  await metered.upstream.until(({ calls }) => calls.length === before + 1);
  const second = call();
  await metered.upstream.until(({ calls }) => calls.length === before + 2);
  expect(await topUps()).toEqual([]);
  expect((await call()).status).toBe(402);
  expect(await topUps()).toHaveLength(1);
  gate.resolve();
  expect([(await first).status, (await second).status]).toEqual([200, 200]);
  await until("paid");
});

test("a payment that is processed for long blocks the next one, and is credited when it arrives", async () => {
  stripe.decide = () => "processing";
  await ready();
  await spend();
  await vi.waitFor(async () => expect(stripe.chargeOf((await topUps())[0]?.id ?? "").status).toBe("processing"));
  await generate();
  const [topUp, ...others] = await topUps();
  expect(others).toEqual([]);
  expect(await auto()).toMatchObject({ state: "paying", topup_id: topUp?.id, month_micros: 10_000_000 });
  expect(await stripe.deliver(stripe.arriveCharge(topUp?.id ?? ""), metered.apps[1]?.url ?? "")).toBe(200);
  expect(await topUps()).toMatchObject([{ state: "paid" }]);
});

test("a stop before the payment is made stops it", async () => {
  stripe.before = (request) => (request === "POST /v1/payment_intents" ? 500 : undefined);
  await ready();
  await spend();
  expect(await auto()).toMatchObject({ state: "paying" });
  expect(await send("PUT", AUTO, { enabled: false })).toMatchObject({ status: 200, body: { enabled: false } });
  stripe.before = () => undefined;
  await until("failed");
  const [topUp] = (await topUps()) as [TopUp];
  expect(topUp.failure).toBe("stopped");
  expect(stripe.charges.get(topUp.id)).toBeUndefined();
});

test("a stop between the creation and the confirmation of the payment cancels it", async () => {
  await ready();
  stripe.before = async (request) => {
    if (request.startsWith("GET /v1/payment_intents/")) await send("PUT", AUTO, { enabled: false });
    return undefined;
  };
  await spend();
  await until("failed");
  const [topUp] = (await topUps()) as [TopUp];
  expect(topUp.failure).toBe("stopped");
  expect(stripe.chargeOf(topUp.id).status).toBe("canceled");
});

async function replaceCard(): Promise<void> {
  await send("PUT", AUTO, REPLACED);
  await stripe.deliver(stripe.storeCard(stripe.setupOf(key.accountId), "4444"), metered.app.url);
}

test("a card that is replaced between the creation and the confirmation of the payment is not charged; the next payment uses the new one", async () => {
  await ready();
  let isReplaced = false;
  stripe.before = async (request) => {
    if (!request.startsWith("GET /v1/payment_intents/") || isReplaced) return undefined;
    isReplaced = true;
    await replaceCard();
    return undefined;
  };
  await spend();
  await until("failed");
  const [stopped] = (await topUps()) as [TopUp];
  expect(stopped.failure).toBe("stopped");
  expect(stripe.chargeOf(stopped.id)).toMatchObject({ status: "canceled", payment_method: "pm_4242" });
  expect(await auto()).toMatchObject({ state: "ready", failures: 0, payment_method: /4444/ });
  await generate();
  await until("paid");
  const [paid] = (await topUps()) as [TopUp];
  expect(stripe.chargeOf(paid.id)).toMatchObject({ status: "succeeded", payment_method: "pm_4444" });
  expect(stripe.charges.get(stopped.id)).toBeUndefined();
});

test("a payment whose creation got no answer is created again with the card that is stored by then", async () => {
  await ready();
  const creation = "POST /v1/payment_intents";
  // Stripe's client repeats the request twice.
  let requests = 0;
  stripe.before = async (request) => {
    if (request !== creation || ++requests > 3) return undefined;
    if (requests === 3) await replaceCard();
    return requests === 1 ? undefined : 500;
  };
  stripe.losesAnswer = (request) => request === creation && requests === 1;
  await spend();
  await until("paid");
  const [paid] = (await topUps()) as [TopUp];
  expect(stripe.chargesOf(paid.id)).toMatchObject([
    { status: "requires_confirmation", payment_method: "pm_4242" },
    { status: "succeeded", payment_method: "pm_4444" },
  ]);
});

test("a request that Stripe refuses fails the top-up", async () => {
  await ready();
  stripe.before = (request) => (request === "POST /v1/payment_intents" ? 400 : undefined);
  await spend();
  await until("failed");
  expect(await topUps()).toMatchObject([{ failure: "refused" }]);
  expect((await auto()).failures).toBe(1);
});

test("a key lowers and stops them, and is told who starts and raises them", async () => {
  const body = { enabled: true, threshold_micros: 5_000_000, amount_micros: 10_000_000 };
  const refused = await send("PUT", AUTO, { ...body, monthly_max_micros: 100_000_000 });
  expect(refused).toMatchObject({
    status: 403,
    body: { error: { code: "insufficient_scope", message: expect.stringContaining("operator") } },
  });
  await ready();
  expect((await send("PUT", AUTO, { ...body, monthly_max_micros: 100_010_000 })).status).toBe(403);
  const lowered = await send("PUT", AUTO, { ...body, monthly_max_micros: 50_000_000 });
  expect(lowered).toMatchObject({ status: 200, body: { monthly_max_micros: 50_000_000 } });
  await metered.operator.suspendAccount({ accountId: key.accountId, reason: "test" });
  expect(await send("PUT", AUTO, { enabled: false })).toMatchObject({ status: 200, body: { state: "off" } });
});

test.each([
  [{ amountMicros: 4_990_000n }, "amount_micros"],
  [{ amountMicros: 10_000_001n }, "amount_micros"],
  [{ thresholdMicros: 0n }, "threshold_micros"],
  [{ monthlyMaxMicros: 9_000_000n }, "monthly_max_micros"],
])("%o is refused", async (changes, field) => {
  await expect(start(changes)).rejects.toThrow(field);
});

test("a page that Stripe does not create is created by the repetition", async () => {
  stripe.before = () => 500;
  await expect(start()).rejects.toThrow("The settings are stored");
  stripe.before = () => undefined;
  expect((await start())?.setupUrl).toBe(stripe.setupOf(key.accountId).url);
});

test("vx topups starts, shows and stops them", async () => {
  const env = { VX_ADMIN_URL: metered.app.adminUrl, VX_ADMIN_TOKEN: OPERATOR_TOKEN };
  const amounts = ["--threshold", "5.00", "--amount", "10.00", "--monthly-max", "100.00"];
  const started = await vx(["topups", "set-auto", key.accountId, ...amounts, "--json"], env);
  expect(started).toMatchObject({ code: 0, stderr: "" });
  const { auto_topup: settings } = JSON.parse(started.stdout);
  expect(settings).toMatchObject({ enabled: true, monthly_max_micros: 100_000_000 });
  const shown = await vx(["topups", "auto", key.accountId], env);
  expect(shown.stdout).toMatch(/^STATE .*\nneeds payment method +\$5\.00 +\$10\.00 +\$0\.00 +\$100\.00 /);
  expect(shown.stdout).toContain(stripe.setupOf(key.accountId).url);
  const stopped = await vx(["topups", "stop-auto", key.accountId], env);
  expect(stopped.stdout).toMatch(/\noff /);
  expect(await vx(["topups", "set-auto", key.accountId, "--amount", "10.00"], env)).toMatchObject({ code: 2 });
}, 60_000);
