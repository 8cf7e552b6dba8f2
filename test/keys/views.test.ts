import { timestampDate } from "@bufbuild/protobuf/wkt";
import { expect, test } from "vitest";
import { KeyService } from "../../gen/vx/v1/key_pb.js";
import { MeService } from "../../gen/vx/v1/me_pb.js";
import { maskOfKey } from "../../src/domain/credentials.ts";
import { useTestApp } from "../support/app.ts";
import { createTestKey, useOperator } from "../support/fixtures.ts";
import { callOf, messageOf } from "../support/protocols.ts";

const { getKey, listKeys, revokeKey } = KeyService.method;
const app = useTestApp();
const operator = useOperator(app);
const call = callOf(app);

test("any key of the account can read a key in every state, without its secret", async () => {
  const { accountId, secret } = await createTestKey(operator);
  const active = await createTestKey(operator, { accountId, rateLimitRpm: 7 });
  const revoked = await createTestKey(operator, { accountId });
  await operator.revokeKey({ keyId: revoked.id });
  const expired = await createTestKey(operator, { accountId });
  await app.database.owner`UPDATE vx.keys SET expires_at = clock_timestamp() WHERE id = ${expired.id}`;
  const get = async ({ id: keyId }: { id: string }) => messageOf(await call(getKey, { keyId }, secret)).apiKey;
  const found = [await get(active), await get(revoked), await get(expired)];
  expect(found).toMatchObject([
    { id: active.id, state: "active", rateLimitRpm: 7, maskedKey: maskOfKey(active.secret) },
    { id: revoked.id, state: "revoked", rateLimitRpm: 6000, maskedKey: maskOfKey(revoked.secret) },
    { id: expired.id, state: "expired", rateLimitRpm: 6000, maskedKey: maskOfKey(expired.secret) },
  ]);
  expect(found.map((key) => key?.revokedAt !== undefined)).toEqual([false, true, false]);
  expect(found.map((key) => key?.expiresAt !== undefined)).toEqual([false, false, true]);
  // An expired key can be revoked, which succeeds again and keeps the first time.
  const revoke = async () => messageOf(await call(revokeKey, { keyId: expired.id }, secret)).apiKey;
  const first = await revoke();
  expect(first).toMatchObject({ state: "revoked", revokedAt: expect.anything() });
  expect(await revoke()).toEqual(first);
});

test("last_used_at is the time of the last call", async () => {
  const { id: keyId, secret } = await createTestKey(operator);
  const startedAt = Date.now();
  const { apiKey } = messageOf(await call(getKey, { keyId }, secret));
  const usedAt = apiKey?.lastUsedAt ? timestampDate(apiKey.lastUsedAt).getTime() : 0;
  expect(usedAt).toBeGreaterThanOrEqual(startedAt - 1);
  expect(usedAt).toBeLessThanOrEqual(Date.now() + 1);
});

test("GetMe returns the masked key, its name, plan, limit and the exact balance", async () => {
  const { accountId, secret } = await createTestKey(operator, { plan: "pro" });
  await operator.creditAccount({ accountId, amountMicros: 9_999_986n, reason: "test", idempotencyKey: "1" });
  const key = { key: maskOfKey(secret), keyName: "test", plan: "pro", rateLimitRpm: 600 };
  const message = { ...key, balance: "$9.999986", balanceMicros: 9_999_986n };
  expect(await call(MeService.method.getMe, {}, secret)).toMatchObject({ ok: true, message });
});

async function list(secret: string, request: { pageSize?: number; pageToken?: string } = {}) {
  const message = messageOf(await call(listKeys, request, secret));
  return { ids: message.apiKeys.map(({ id }) => id), ...message };
}

test("lists only the keys of the account, newest first, in every state", async () => {
  const calling = await createTestKey(operator);
  const { accountId } = calling;
  await createTestKey(operator);
  const revoked = await createTestKey(operator, { accountId });
  const newest = await createTestKey(operator, { accountId });
  await operator.revokeKey({ keyId: revoked.id });
  const { apiKeys, nextPageToken } = await list(calling.secret);
  expect(apiKeys).toMatchObject([
    { id: newest.id, state: "active" },
    { id: revoked.id, state: "revoked" },
    { id: calling.id, state: "active" },
  ]);
  expect(nextPageToken).toBe("");
  expect(JSON.stringify(apiKeys, (_, value) => (typeof value === "bigint" ? "" : value))).not.toContain(
    newest.secret.slice(12, -4),
  );
});

test("pages have no gap and no overlap while keys are added", async () => {
  const calling = await createTestKey(operator);
  const { accountId } = calling;
  const ids = [calling.id];
  for (let i = 0; i < 4; i++) ids.unshift((await createTestKey(operator, { accountId })).id);
  const first = await list(calling.secret, { pageSize: 2 });
  await createTestKey(operator, { accountId });
  const second = await list(calling.secret, { pageSize: 2, pageToken: first.nextPageToken });
  await createTestKey(operator, { accountId });
  const third = await list(calling.secret, { pageSize: 2, pageToken: second.nextPageToken });
  expect([first.ids, second.ids, third.ids]).toEqual([ids.slice(0, 2), ids.slice(2, 4), ids.slice(4)]);
  expect(third.nextPageToken).toBe("");
});
