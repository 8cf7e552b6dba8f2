import { timestampDate } from "@bufbuild/protobuf/wkt";
import { beforeAll, describe, expect, test } from "vitest";
import { KeyService } from "../../gen/vx/v1/key_pb.js";
import { LedgerService } from "../../gen/vx/v1/ledger_pb.js";
import { MeService } from "../../gen/vx/v1/me_pb.js";
import { maskOfKey } from "../../src/domain/credentials.ts";
import { useTestApp } from "../support/app.ts";
import { createTestAccount, createTestKey, useOperator } from "../support/fixtures.ts";
import { callOf, messageOf } from "../support/protocols.ts";

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
    maskedKey: maskOfKey(secret),
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

test.each(["x", "x".repeat(100), "🔑".repeat(100), `'";--\\ %s $1 {}`, "  ci  "])(
  "the name %j is kept as it is",
  async (name) => {
    const calling = await createTestKey(operator);
    expect((await create(calling.secret, { name })).apiKey.name).toBe(name);
  },
);

test("any limit up to that of the plan is accepted", async () => {
  const calling = await createTestKey(operator, { plan: "pro" });
  for (const rateLimitRpm of [1, 599, 600])
    expect((await create(calling.secret, { name: "ci", rateLimitRpm })).apiKey).toMatchObject({ rateLimitRpm });
});

describe("the maximum number of active keys", () => {
  beforeAll(async () => {
    await operator.putPlan({ name: "two-keys", rpm: 600, maxActiveKeys: 2 });
  });

  /** An account with the maximum number of active keys: the calling one, and the one with the id. */
  async function fullAccount() {
    const calling = await createTestKey(operator, { plan: "two-keys" });
    const another = () => call(createKey, { name: "ci" }, calling.secret);
    const id = messageOf(await another()).apiKey?.id ?? "";
    return { calling, another, id };
  }

  test("a key above the maximum of the plan is a 409 that names plan and maximum", async () => {
    const { calling, another } = await fullAccount();
    const outcome = await another();
    expect(outcome).toMatchObject({
      code: "failed_precondition",
      reason: "key_limit_reached",
      metadata: { plan: "two-keys", max_active_keys: "2" },
    });
    expect(outcome.ok || outcome.details.sort()).toEqual(["ErrorInfo", "QuotaFailure"]);
    expect((await operator.listKeys({ accountId: calling.accountId })).apiKeys).toHaveLength(2);
  });

  test.each([
    ["revoked", (id: string) => operator.revokeKey({ keyId: id })],
    ["expired", (id: string) => app.database.owner`UPDATE vx.keys SET expires_at = clock_timestamp() WHERE id = ${id}`],
  ])("%s keys do not count", async (_, end) => {
    const { another, id } = await fullAccount();
    await end(id);
    expect([(await another()).ok, (await another()).ok]).toEqual([true, false]);
  });

  test("keys on other plans and of other accounts do not count", async () => {
    const accountId = await createTestAccount(operator, "two-keys");
    await createTestKey(operator, { accountId, plan: "pro" });
    await createTestKey(operator, { plan: "two-keys" });
    const calling = await createTestKey(operator, { accountId, plan: "two-keys" });
    const outcome = await call(createKey, { name: "ci" }, calling.secret);
    expect(outcome.ok).toBe(true);
  });
});
