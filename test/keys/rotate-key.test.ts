import { timestampDate } from "@bufbuild/protobuf/wkt";
import { expect, test } from "vitest";
import { KeyService } from "../../gen/vx/v1/key_pb.js";
import { LedgerService } from "../../gen/vx/v1/ledger_pb.js";
import { MeService } from "../../gen/vx/v1/me_pb.js";
import { maskOfKey } from "../../src/domain/credentials.ts";
import { useTestApp } from "../support/app.ts";
import { createTestKey, type TestKey, useOperator } from "../support/fixtures.ts";
import { withinOneMinute } from "../support/minute.ts";
import { callOf, messageOf } from "../support/protocols.ts";

const { getMe } = MeService.method;
const { listEntries } = LedgerService.method;

const app = useTestApp();
const operator = useOperator(app);
const call = callOf(app);

const rotate = (calling: string, keyId: string, overlapSeconds: number) =>
  call(KeyService.method.rotateKey, { keyId, overlapSeconds }, calling);

async function rotated({ id }: Pick<TestKey, "id">, calling: string, overlapSeconds: number) {
  const message = messageOf(await rotate(calling, id, overlapSeconds));
  expect(message.apiKey?.id).toBe(id);
  return message;
}

/** Whose key it is, or why the call was refused. */
async function me(secret: string) {
  const outcome = await call(getMe, {}, secret);
  return outcome.ok ? outcome.message.key : outcome.reason;
}

test("both secrets work during the overlap, and the old one shows its own mask", async () => {
  const key = await createTestKey(operator);
  const before = Date.now();
  const { apiKey, secret } = await rotated(key, key.secret, 3_600);
  expect(apiKey?.maskedKey).toBe(maskOfKey(secret));
  const endsAt = apiKey?.previousExpiresAt ? timestampDate(apiKey.previousExpiresAt).getTime() : 0;
  expect(endsAt).toBeGreaterThan(before + 3_590_000);
  expect(endsAt).toBeLessThan(Date.now() + 3_610_000);
  for (const sent of [key.secret, secret]) expect(await me(sent)).toBe(maskOfKey(sent));
});

test("without an overlap the old secret ends at once", async () => {
  const key = await createTestKey(operator);
  const { apiKey, secret } = await rotated(key, key.secret, 0);
  expect(apiKey?.previousExpiresAt).toBeUndefined();
  expect(await me(key.secret)).toBe("expired_api_key");
  expect(await me(secret)).toBe(maskOfKey(secret));
});

test("a key has at most two secrets", async () => {
  const key = await createTestKey(operator);
  const { secret: second } = await rotated(key, key.secret, 3_600);
  const { secret: third } = await rotated(key, second, 3_600);
  expect(await me(key.secret)).toBe("invalid_api_key");
  expect(await me(second)).toBe(maskOfKey(second));
  expect(await me(third)).toBe(maskOfKey(third));
});

test.each([3_600, 0])("revocation ends both secrets, with an overlap of %i s", async (overlapSeconds) => {
  const key = await createTestKey(operator);
  const { secret } = await rotated(key, key.secret, overlapSeconds);
  await operator.revokeKey({ keyId: key.id });
  for (const sent of [key.secret, secret]) expect(await me(sent)).toBe("revoked_api_key");
  await expect(operator.rotateKey({ keyId: key.id })).rejects.toThrow("revoked");
});

test("both secrets share one window, and the calls of both in one batch", async () => {
  const key = await createTestKey(operator, { rateLimitRpm: 5 });
  const { secret } = await operator.rotateKey({ keyId: key.id, overlapSeconds: 3_600 });
  await withinOneMinute(async () => {
    await app.database.owner`DELETE FROM vx.key_minutes WHERE key_id = ${key.id}`;
    const outcomes = await Promise.all(
      Array.from({ length: 10 }, (_, i) => call(listEntries, {}, i % 2 === 0 ? key.secret : secret)),
    );
    expect(outcomes.filter(({ ok }) => ok)).toHaveLength(5);
  });
});

test("a key rotates itself and its descendants, and no other key", async () => {
  const parent = await createTestKey(operator);
  const other = await createTestKey(operator, { accountId: parent.accountId });
  expect(await rotate(parent.secret, other.id, 0)).toMatchObject({ reason: "not_found" });
  const child = messageOf(await call(KeyService.method.createKey, { name: "child" }, parent.secret));
  const { secret } = await rotated({ id: child.apiKey?.id ?? "" }, parent.secret, 0);
  expect(await me(child.secret)).toBe("expired_api_key");
  expect(await me(secret)).toBe(maskOfKey(secret));
});

test.each([-1, 2_592_001])("an overlap of %i s is a 400", async (overlapSeconds) => {
  const key = await createTestKey(operator);
  expect(await rotate(key.secret, key.id, overlapSeconds)).toMatchObject({ fields: ["overlap_seconds"] });
  expect((await operator.rotateKey({ keyId: key.id, overlapSeconds: 2_592_000 })).secret).toMatch(/^vx_live_/);
});
