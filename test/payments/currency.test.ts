import { tmpdir } from "node:os";
import { afterEach, expect, test } from "vitest";
import { setCurrency } from "../../src/domain/money.ts";
import { spawnVx } from "../cli/support.ts";
import { sendJson } from "../rest/send-json.ts";
import { OPERATOR_TOKEN, startTestApp } from "../support/app.ts";
import { createTestDatabase } from "../support/database.ts";
import { FakeStripe } from "../support/fake-stripe.ts";
import { createTestAccount, createTestKey, operatorOf } from "../support/fixtures.ts";
import { startMetered } from "../support/metered.ts";

afterEach(() => setCurrency("USD"));

/** What Stripe gets for 1,250 units of the currency, and how the amount is written. */
const CASES = [
  { code: "JPY", stripe: 1_250, text: "¥1250" },
  { code: "KWD", stripe: 1_250_000, text: "KWD 1250.000" },
  { code: "UGX", stripe: 125_000, text: "UGX 1250" },
];

test.each(CASES)("a payment in $code", async ({ code, stripe: amount, text }) => {
  await using cleanup = new AsyncDisposableStack();
  const stripe = await FakeStripe.start();
  cleanup.defer(() => stripe.stop());
  const metered = await startMetered({ env: { ...stripe.env, VX_CURRENCY: code, VX_TOP_UP_MAX: "2000" } });
  cleanup.defer(() => metered.stop());
  const { url } = metered.app;
  const { accountId } = await metered.payer(0n);
  const { secret } = await createTestKey(metered.operator, { accountId, scopes: ["read", "billing"] });
  const send = async (verb: string, path: string, body?: unknown) =>
    (await sendJson(url, { verb, path, secret, ...(body === undefined ? {} : { body }) })).body as never;
  const { topup }: { topup: { id: string } } = await send("POST", "/v1/topups", { amount_micros: 1_250_000_000 });
  expect(topup).toMatchObject({ amount: text });
  expect(stripe.sessionOf(topup.id)).toMatchObject({ amount_total: amount, currency: code.toLowerCase() });
  for (const event of stripe.pay(topup.id)) expect(await stripe.deliver(event, url)).toBe(200);
  expect(await send("GET", "/v1/account")).toMatchObject({ balance: text, balance_micros: 1_250_000_000 });
});

test("the database keeps the currency of its amounts, which commands and exports use", async () => {
  await using cleanup = new AsyncDisposableStack();
  const database = await createTestDatabase();
  cleanup.defer(() => database.drop());
  const app = await startTestApp({ database, env: { VX_CURRENCY: "CHF" } });
  // No ledger row exists yet, but a server that uses the currency.
  expect(await database.owner`SELECT vx.keep_currency('EUR') AS code`).toEqual([{ code: "CHF" }]);
  const env = { VX_ADMIN_URL: app.adminUrl, VX_ADMIN_TOKEN: OPERATOR_TOKEN };
  const operator = operatorOf(app);
  const accountId = await createTestAccount(operator);
  const credit = { accountId, amountMicros: 12_500_000n, reason: "invoice", idempotencyKey: "once" };
  await operator.creditAccount(credit);
  expect((await spawnVx(["accounts", "list"], env)).stdout).toContain("CHF 12.50");
  expect((await spawnVx(["usage", "export", "--format", "focus", "--from", "2020-01-01"], env)).stdout).toContain("CHF");
  await app.stop();
  await expect(startTestApp({ database, env: { VX_CURRENCY: "EUR" } })).rejects.toThrow(
    "VX_CURRENCY: is EUR, but the database, or a server that uses it, has amounts in CHF; set VX_CURRENCY=CHF",
  );
  const audit = await spawnVx(["audit", "--archive", tmpdir()], { DATABASE_URL: database.url });
  expect(audit.stdout + audit.stderr).toContain("CHF 12.50");
});
