import { randomBytes, randomUUID } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { generateSessionToken } from "../../src/domain/credentials.ts";
import { OPERATOR_TOKEN, startTestApp, type TestApp } from "../support/app.ts";
import { FakeStripe } from "../support/fake-stripe.ts";
import { createTestKey, operatorOf } from "../support/fixtures.ts";
import { createLeakReporter, leakKeysFile, signedHeaders } from "../support/leak-reporter.ts";
import { bearer } from "../support/protocols.ts";
import { createTemporaryFolder } from "../support/temporary-folder.ts";

const folder = createTemporaryFolder("failure-lines");
const reporter = createLeakReporter("ab12");
let stripe: FakeStripe;
let app: TestApp;
let secret: string;
let operatorToken: string;

beforeAll(async () => {
  stripe = await FakeStripe.start();
  const leakKeys = join(folder.path, "keys.json");
  writeFileSync(leakKeys, leakKeysFile(reporter));
  app = await startTestApp({ env: { ...stripe.env, VX_LEAK_KEYS_FILE: leakKeys, VX_LOG_LEVEL: "error" } });
  const operator = operatorOf(app);
  ({ secret } = await createTestKey(operator));
  ({ secret: operatorToken } = await operator.createOperator({ name: "viewer", role: "viewer" }));
});
afterAll(async () => {
  await app.stop();
  await stripe.stop();
  folder.remove();
});

type Sent = { readonly url: string; readonly headers: Record<string, string>; readonly body?: string };

const json = { "content-type": "application/json" };

function paymentEvent(): Sent {
  const object = { id: "cs_1", client_reference_id: "top_01kb0zq5p9e8tvm4x2c7h3j6rq" };
  const { body } = stripe.emitOther("checkout.session.completed", object);
  return { url: `${app.url}/stripe/events`, headers: { "stripe-signature": stripe.sign(body) }, body };
}

function leakReport(): Sent {
  const body = JSON.stringify([{ token: secret, type: "vx_key" }]);
  return { url: `${app.url}/leaks`, headers: signedHeaders(reporter, body), body };
}

/** The function of the database that fails. */
test.each<[string, string, () => Sent]>([
  ["a payment event", "get_topup", paymentEvent],
  ["a leak report", "report_leaks", leakReport],
  [
    "the link of an operator to the page",
    "use_page_link",
    () => ({
      url: `${app.url}/account/auth/view`,
      headers: { origin: app.url, ...bearer(generateSessionToken(randomBytes)) },
      body: "",
    }),
  ],
  ["a call over REST", "admit", () => ({ url: `${app.url}/v1/me`, headers: bearer(secret) })],
  [
    "a call over Connect",
    "admit",
    () => ({ url: `${app.url}/vx.v1.MeService/GetMe`, headers: { ...json, ...bearer(secret) }, body: "{}" }),
  ],
  ["the metrics", "find_operator", () => ({ url: `${app.adminUrl}/metrics`, headers: bearer(operatorToken) })],
  ["the session", "find_operator", () => ({ url: `${app.adminUrl}/auth/session`, headers: bearer(operatorToken) })],
  [
    "a call of an operator",
    "list_plans",
    () => ({
      url: `${app.adminUrl}/vx.admin.v1.AdminService/ListPlans`,
      headers: { ...json, ...bearer(OPERATOR_TOKEN) },
      body: "{}",
    }),
  ],
])("a 500 of %s has one log line with its cause", async (_, broken, sent) => {
  const { owner } = app.database;
  const requestId = randomUUID();
  await owner.unsafe(`ALTER FUNCTION vx.${broken} RENAME TO broken`);
  const { url, headers, body } = sent();
  const answer = await fetch(url, {
    method: body === undefined ? "GET" : "POST",
    headers: { ...headers, "x-request-id": requestId },
    ...(body === undefined ? {} : { body }),
  });
  await owner.unsafe(`ALTER FUNCTION vx.broken RENAME TO ${broken}`);
  expect([answer.status, answer.headers.get("x-request-id")]).toEqual([500, requestId]);
  const lines = app
    .logText()
    .split("\n")
    .filter((line) => line.includes(`"request_id":"${requestId}"`));
  expect(lines).toHaveLength(1);
  expect(lines[0]).toContain(`function vx.${broken}(`);
});
