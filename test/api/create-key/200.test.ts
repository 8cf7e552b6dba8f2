import { timestampDate, timestampFromDate } from "@bufbuild/protobuf/wkt";
import { expect, test } from "vitest";
import { KeyService } from "../../../gen/vx/v1/key_pb.js";
import { LedgerService } from "../../../gen/vx/v1/ledger_pb.js";
import { MeService } from "../../../gen/vx/v1/me_pb.js";
import { useTestApp } from "../../support/app.ts";
import { createTestAccount, createTestKey, useOperator } from "../../support/fixtures.ts";
import { callOf } from "../../support/protocols.ts";

const createKey = KeyService.method.createKey;

const app = useTestApp();
const operator = useOperator(app);
const call = callOf(app);

async function create(calling: string, request: { name: string; scopes?: string[]; rateLimitRpm?: number }) {
  const outcome = await call(createKey, request, calling);
  if (!outcome.ok || !outcome.message.apiKey) throw new Error(`refused: ${JSON.stringify(outcome)}`);
  return { ...outcome.message, apiKey: outcome.message.apiKey };
}

test("the response contains the full key, the default scopes and the limit of the plan", async () => {
  const calling = await createTestKey(operator);
  const startedAt = Date.now();
  const { apiKey, secret } = await create(calling.secret, { name: "ci" });
  expect(secret).toMatch(/^vx_live_[0-9A-Za-z]{32}$/);
  expect(apiKey).toMatchObject({
    id: expect.stringMatching(/^key_[0-9a-z]{26}$/),
    name: "ci",
    maskedKey: `${secret.slice(0, 12)}…${secret.slice(-4)}`,
    plan: "scale",
    scopes: ["generate", "read"],
    state: "active",
    rateLimitRpm: 6000,
  });
  expect(apiKey.revokedAt ?? apiKey.expiresAt ?? apiKey.lastUsedAt).toBeUndefined();
  const createdAt = apiKey.createdAt ? timestampDate(apiKey.createdAt).getTime() : 0;
  expect(createdAt).toBeGreaterThanOrEqual(startedAt - 1);
  expect(createdAt).toBeLessThanOrEqual(Date.now() + 1);
});

test("the new key works at once, for the same account and with its scopes", async () => {
  const calling = await createTestKey(operator);
  await operator.creditAccount({ accountId: calling.accountId, amountMicros: 5_000_000n, reason: "test", idempotencyKey: "1" });
  const { secret } = await create(calling.secret, { name: "reader", scopes: ["read"] });
  const me = await call(MeService.method.getMe, {}, secret);
  const ledger = await call(LedgerService.method.listEntries, {}, secret);
  const keys = await call(KeyService.method.listKeys, {}, secret);
  expect(me).toMatchObject({ message: { keyName: "reader", balanceMicros: 5_000_000n } });
  expect(ledger.ok).toBe(true);
  expect(keys).toMatchObject({ reason: "insufficient_scope" });
});

test("the new key has the plan of the calling key, not of the account", async () => {
  const accountId = await createTestAccount(operator, "scale");
  const calling = await createTestKey(operator, { accountId, plan: "pro" });
  expect((await create(calling.secret, { name: "ci" })).apiKey).toMatchObject({ plan: "pro", rateLimitRpm: 600 });
});

test.each([
  { what: "1 character", name: "x" },
  { what: "100 characters", name: "x".repeat(100) },
  { what: "100 characters of two code units each", name: "🔑".repeat(100) },
  { what: "quotes, backslashes and percent signs", name: `'";--\\ %s $1 {}` },
  { what: "surrounding spaces", name: "  ci  " },
])("a name of $what is kept as it is", async ({ name }) => {
  const calling = await createTestKey(operator);
  expect((await create(calling.secret, { name })).apiKey.name).toBe(name);
});

test.each([1, 599, 600])("a limit of %i is accepted on a plan of 600", async (rateLimitRpm) => {
  const calling = await createTestKey(operator, { plan: "pro" });
  expect((await create(calling.secret, { name: "ci", rateLimitRpm })).apiKey).toMatchObject({ rateLimitRpm });
});

test("an expiry in the future is stored", async () => {
  const calling = await createTestKey(operator);
  for (const text of [new Date(Date.now() + 60_000).toISOString(), "9999-12-31T23:59:59.999Z"]) {
    const expiresAt = timestampFromDate(new Date(text));
    const outcome = await call(createKey, { name: "ci", expiresAt }, calling.secret);
    expect(outcome).toMatchObject({ ok: true, message: { apiKey: { state: "active", expiresAt } } });
  }
});
