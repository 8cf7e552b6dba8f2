import { expect, test } from "vitest";
import { KeyService } from "../../../gen/vx/v1/key_pb.js";
import { MeService } from "../../../gen/vx/v1/me_pb.js";
import { useTestApp } from "../../support/app.ts";
import { createTestKey, useOperator } from "../../support/fixtures.ts";
import { callOf } from "../../support/protocols.ts";

const revokeKey = KeyService.method.revokeKey;
const getMe = MeService.method.getMe;

const app = useTestApp();
const operator = useOperator(app);
const call = callOf(app);

test("a revoked key is rejected from the next call, and other keys continue to work", async () => {
  const calling = await createTestKey(operator);
  const other = await createTestKey(operator, { accountId: calling.accountId });
  expect(await call(getMe, {}, other.secret)).toMatchObject({ ok: true });
  const outcome = await call(revokeKey, { keyId: other.id }, calling.secret);
  expect(outcome).toMatchObject({ ok: true, message: { apiKey: { id: other.id, state: "revoked" } } });
  expect(await call(getMe, {}, other.secret)).toMatchObject({ reason: "revoked_api_key" });
  expect(await call(getMe, {}, calling.secret)).toMatchObject({ ok: true });
});

test("revoking again succeeds and keeps the first revoked_at", async () => {
  const calling = await createTestKey(operator);
  const other = await createTestKey(operator, { accountId: calling.accountId });
  const times = [];
  for (let i = 0; i < 3; i++) {
    const outcome = await call(revokeKey, { keyId: other.id }, calling.secret);
    times.push(outcome.ok && outcome.message.apiKey?.revokedAt);
  }
  expect(times[0]).toBeTruthy();
  expect(times).toEqual([times[0], times[0], times[0]]);
});

test("a key can revoke itself and is rejected afterwards", async () => {
  const calling = await createTestKey(operator);
  const [first, second] = [
    await call(revokeKey, { keyId: calling.id }, calling.secret),
    await call(revokeKey, { keyId: calling.id }, calling.secret),
  ];
  expect(first).toMatchObject({ ok: true, message: { apiKey: { state: "revoked" } } });
  expect(second).toMatchObject({ reason: "revoked_api_key" });
});

test("an expired key can be revoked and then has the state revoked", async () => {
  const calling = await createTestKey(operator);
  const other = await createTestKey(operator, { accountId: calling.accountId });
  await app.database.owner`UPDATE vx.keys SET expires_at = clock_timestamp() WHERE id = ${other.id}`;
  const outcome = await call(revokeKey, { keyId: other.id }, calling.secret);
  expect(outcome).toMatchObject({ message: { apiKey: { state: "revoked" } } });
  expect(await call(getMe, {}, other.secret)).toMatchObject({ reason: "revoked_api_key" });
});
