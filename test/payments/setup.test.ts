import { readFileSync } from "node:fs";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { examine } from "../../src/app/doctor.ts";
import { readConfig } from "../../src/app/settings/config.ts";
import { EVENTS } from "../../src/payments/stripe/stripe-payments.ts";
import { vx } from "../cli/support.ts";
import { startTestApp, type TestApp } from "../support/app.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { FakeStripe, WEBHOOK_SECRET } from "../support/fake-stripe.ts";

const PUBLIC_URL = "https://api.example.com";
const URL_OF_EVENTS = `${PUBLIC_URL}/stripe/events`;
const WITHOUT_INVOICES = EVENTS.filter((event) => event !== "invoice.paid");

let stripe: FakeStripe;
let database: TestDatabase;
/** The settings before there is an endpoint. */
let env: Record<string, string>;

beforeAll(async () => {
  stripe = await FakeStripe.start();
  database = await createTestDatabase();
  const { VX_STRIPE_WEBHOOK_SECRET: _, ...rest } = stripe.env;
  env = { ...rest, VX_PUBLIC_URL: PUBLIC_URL, DATABASE_URL: database.url };
});
afterEach(() => {
  stripe.endpoints.length = 0;
  stripe.requests.length = 0;
  stripe.before = () => undefined;
  stripe.hasPortalSettings = true;
});
afterAll(async () => {
  await stripe.stop();
  await database.drop();
});

const setUp = (more: Record<string, string> = {}, args: readonly string[] = []) =>
  vx(["payments", "setup", ...args], { ...env, ...more });

async function problems(more: Record<string, string> = {}) {
  const config = readConfig({ ...env, ...stripe.env, ...more });
  const found = await examine({ config, env: {}, embedded: undefined });
  return found
    .filter(({ check }) => check === "payment events" || check === "customer portal")
    .filter(({ status }) => status !== "ok")
    .map(({ check, status, message }) => `${status} ${check}: ${message}`);
}

const add = (changes: Partial<FakeStripe["endpoints"][number]> = {}) => {
  const endpoint = {
    id: `we_${stripe.endpoints.length}`,
    url: URL_OF_EVENTS,
    livemode: true,
    status: "enabled" as const,
    enabled_events: [...WITHOUT_INVOICES],
    ...changes,
  };
  stripe.endpoints.push(endpoint);
  return endpoint;
};

test("creates the endpoint with its events, prints its secret once, and does nothing when repeated", async () => {
  const first = await setUp();
  expect(first).toMatchObject({ code: 0, stderr: "" });
  expect(first.stdout).toContain(`for ${URL_OF_EVENTS} (test mode) with ${WITHOUT_INVOICES.length} events.`);
  expect(first.stdout).toContain(`\nVX_STRIPE_WEBHOOK_SECRET=${WEBHOOK_SECRET}\n`);
  expect(stripe.endpoints).toMatchObject([{ url: URL_OF_EVENTS, enabled_events: WITHOUT_INVOICES }]);
  expect(await problems()).toEqual([]);

  const again = await setUp({ VX_STRIPE_WEBHOOK_SECRET: WEBHOOK_SECRET });
  expect(again.stdout).toMatch(/^Nothing to do: .* is enabled and has all events\.\n$/);
  expect((await setUp()).stdout).toContain("VX_STRIPE_WEBHOOK_SECRET is not set");
  expect(stripe.requests.filter((request) => request.startsWith("POST"))).toHaveLength(1);
});

test("the server accepts the events of an endpoint that the command created", async () => {
  const { stdout } = await setUp();
  const [, secret = ""] = /^VX_STRIPE_WEBHOOK_SECRET=(.*)$/m.exec(stdout) ?? [];
  const app: TestApp = await startTestApp({ env: { ...stripe.env, VX_STRIPE_WEBHOOK_SECRET: secret } });
  try {
    const path = new URL(stripe.endpoints[0]?.url ?? "").pathname;
    const body = stripe.emitOther("charge.refunded", { id: "ch_1", metadata: {} }).body;
    const headers = { "content-type": "application/json", "stripe-signature": stripe.sign(body, secret) };
    expect((await fetch(app.url + path, { method: "POST", headers, body })).status).toBe(200);
  } finally {
    await app.stop();
  }
});

test("adds the events that an endpoint lacks, keeps its others, and enables it", async () => {
  const [missing = "", ...rest] = WITHOUT_INVOICES;
  add({ enabled_events: [...rest, "customer.created"], status: "disabled" });
  add({ url: "https://other.example/stripe/events", enabled_events: [] });
  expect(await problems()).toEqual(["problem payment events: the webhook endpoint we_0 is disabled"]);
  const { stdout } = await setUp({ VX_STRIPE_WEBHOOK_SECRET: "whsec_1" }, ["--json"]);
  expect(JSON.parse(stdout)).toMatchObject({ change: "updated", added: [missing], endpoint: { live: true } });
  expect(stripe.endpoints[0]).toMatchObject({ status: "enabled", enabled_events: [...rest, "customer.created", missing] });
  expect(stripe.endpoints[1]?.enabled_events).toEqual([]);
  expect(await problems()).toEqual([]);
});

test("invoices need one more event", async () => {
  add();
  const invoices = { VX_STRIPE_INVOICES: "on" };
  expect(await problems(invoices)).toEqual(["problem payment events: the webhook endpoint we_0 does not get invoice.paid"]);
  expect((await setUp(invoices)).stdout).toContain("(live mode): invoice.paid.\n");
  expect(await problems(invoices)).toEqual([]);
});

test("an endpoint that gets all events of Stripe lacks none", async () => {
  add({ enabled_events: ["*"] });
  expect(await problems({ VX_STRIPE_INVOICES: "on" })).toEqual([]);
});

test("several endpoints with the same address are not changed", async () => {
  add({ enabled_events: [] });
  add();
  const { code, stderr } = await setUp();
  expect(code).toBe(1);
  expect(stderr).toContain("we_0 and we_1");
  expect(stripe.endpoints[0]?.enabled_events).toEqual([]);
  expect(await problems()).toEqual([expect.stringContaining("Stripe has 2 webhook endpoints")]);
});

test("the doctor says what is missing", async () => {
  stripe.hasPortalSettings = false;
  expect(await problems()).toEqual([
    `problem payment events: Stripe has no webhook endpoint with the address ${URL_OF_EVENTS}`,
    expect.stringContaining("warning customer portal: its settings are not saved"),
  ]);
});

test.each([
  [403, "warning"],
  [401, "problem"],
])("a %i of Stripe is a %s of the doctor and an error of the command, without the secret key", async (status, level) => {
  stripe.before = () => status;
  expect(await problems()).toEqual([
    expect.stringMatching(`^${level} payment events: Stripe answered ${status} `),
    expect.stringMatching(`^${level} customer portal: Stripe answered ${status} `),
  ]);
  const { code, stderr } = await setUp();
  expect(code).toBe(1);
  expect(stderr).toMatch(/^vx: Stripe answered 40[13] .*; check VX_STRIPE_SECRET_KEY: a restricted key needs/);
  expect(stderr).not.toContain("sk_test");
});

test.each([
  [{ VX_STRIPE_SECRET_KEY: "" }, "VX_STRIPE_SECRET_KEY: must"],
  [{ VX_PUBLIC_URL: "" }, "VX_PUBLIC_URL: must be the address at which Stripe reaches the server"],
  [{ VX_STRIPE_SECRET_KEY: "pk_live_1" }, "VX_STRIPE_SECRET_KEY: must begin with sk_ or rk_"],
])("%o is wrong usage and sends no request", async (more, message) => {
  const { code, stderr } = await setUp(more);
  expect(code).toBe(2);
  expect(stderr).toContain(message);
  expect(stripe.requests).toEqual([]);
});

test("docs/payments.md names every event that an endpoint needs", () => {
  const text = readFileSync("docs/payments.md", "utf8");
  expect(EVENTS.filter((event) => !text.includes(`\`${event}\``))).toEqual([]);
});
