import { timestampDate } from "@bufbuild/protobuf/wkt";
import { expect, test } from "vitest";
import { KeyService } from "../../../gen/vx/v1/key_pb.js";
import { useTestApp } from "../../support/app.ts";
import { createTestKey, useOperator } from "../../support/fixtures.ts";
import { callOf } from "../../support/protocols.ts";

const app = useTestApp();
const operator = useOperator(app);
const call = callOf(app);

test("any key of the account can read a key in every state, without its secret", async () => {
  const calling = await createTestKey(operator);
  const { accountId } = calling;
  const active = await createTestKey(operator, { accountId, rateLimitRpm: 7 });
  const revoked = await createTestKey(operator, { accountId });
  await operator.revokeKey({ keyId: revoked.id });
  const expired = await createTestKey(operator, { accountId });
  await app.database.owner`UPDATE vx.keys SET expires_at = clock_timestamp() WHERE id = ${expired.id}`;

  const get = async (keyId: string) => {
    const outcome = await call(KeyService.method.getKey, { keyId }, calling.secret);
    return outcome.ok ? outcome.message.apiKey : undefined;
  };
  const found = [await get(active.id), await get(revoked.id), await get(expired.id)];

  expect(found).toMatchObject([
    { id: active.id, state: "active", rateLimitRpm: 7, maskedKey: masked(active.secret) },
    { id: revoked.id, state: "revoked", rateLimitRpm: 6000, maskedKey: masked(revoked.secret) },
    { id: expired.id, state: "expired", rateLimitRpm: 6000, maskedKey: masked(expired.secret) },
  ]);
  expect(found.map((key) => key?.revokedAt !== undefined)).toEqual([false, true, false]);
  expect(found.map((key) => key?.expiresAt !== undefined)).toEqual([false, false, true]);
});

test("last_used_at is the time of the last call", async () => {
  const calling = await createTestKey(operator);
  const startedAt = Date.now();
  const outcome = await call(KeyService.method.getKey, { keyId: calling.id }, calling.secret);
  const lastUsedAt = outcome.ok ? outcome.message.apiKey?.lastUsedAt : undefined;
  const usedAt = lastUsedAt ? timestampDate(lastUsedAt).getTime() : 0;
  expect(usedAt).toBeGreaterThanOrEqual(startedAt - 1);
  expect(usedAt).toBeLessThanOrEqual(Date.now() + 1);
});

function masked(secret: string): string {
  return `${secret.slice(0, 12)}…${secret.slice(-4)}`;
}
