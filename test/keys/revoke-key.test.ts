import { expect, test } from "vitest";
import { useTestApp } from "../support/app.ts";
import { createTestKey, useOperator } from "../support/fixtures.ts";
import { bearer } from "../support/protocols.ts";

const app = useTestApp();
const operator = useOperator(app);

async function revoke(secret: string, id: string) {
  const answer = await fetch(`${app.url}/v1/keys/${id}`, { method: "DELETE", headers: bearer(secret) });
  const body = (await answer.json()) as { error?: { code: string } };
  const remaining = answer.headers.get("x-ratelimit-remaining-requests");
  return { status: answer.status, code: body.error?.code, remaining };
}

test.each([["generate"], ["read"], ["webhooks"], ["billing"]])(
  "a key with only the scope %s revokes itself, which takes a slot, and no other key",
  async (scope) => {
    const key = await createTestKey(operator, { scopes: [scope], rateLimitRpm: 5 });
    const other = await createTestKey(operator, { accountId: key.accountId, scopes: [scope] });
    expect(await revoke(key.secret, other.id)).toEqual({ status: 403, code: "insufficient_scope", remaining: "4" });
    expect(await revoke(key.secret, key.id)).toEqual({ status: 200, code: undefined, remaining: "3" });
    expect(await revoke(key.secret, key.id)).toMatchObject({ status: 401, code: "revoked_api_key" });
    expect(await revoke(other.secret, other.id)).toMatchObject({ status: 200 });
  },
);

test("a key without the scope keys is limited in revocations as in other calls", async () => {
  const key = await createTestKey(operator, { scopes: ["read"], rateLimitRpm: 2 });
  const codes = [];
  for (let i = 0; i < 3; i++) codes.push((await revoke(key.secret, "key_none")).code);
  expect(codes).toEqual(["insufficient_scope", "insufficient_scope", "rate_limit_exceeded"]);
});

test("a key with the scope keys revokes the keys of its account whose scopes its own cover", async () => {
  const key = await createTestKey(operator, { scopes: ["read", "keys"] });
  const { accountId } = key;
  const covered = await createTestKey(operator, { accountId, scopes: ["read"] });
  const paying = await createTestKey(operator, { accountId, scopes: ["read", "billing"] });
  const foreign = await createTestKey(operator, { scopes: ["read"] });
  expect(await revoke(key.secret, covered.id)).toMatchObject({ status: 200 });
  for (const { id } of [paying, foreign]) expect(await revoke(key.secret, id)).toMatchObject({ status: 404, code: "not_found" });
  expect(await revoke(paying.secret, paying.id)).toMatchObject({ status: 200 });
});
