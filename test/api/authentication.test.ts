import { randomBytes } from "node:crypto";
import { beforeAll, describe, expect, test } from "vitest";
import { generateKey } from "../../src/domain/credentials.ts";
import { openAny, rpcMethods } from "../support/any-method.ts";
import { useTestApp } from "../support/app.ts";
import { createTestKey, operatorOf } from "../support/fixtures.ts";
import { bearer, protocols } from "../support/protocols.ts";

const secrets = {
  unknown: unknownKey(),
  mistyped: "",
  revoked: "",
  expired: "",
  valid: "",
  suspendedRevoked: "",
  suspendedExpired: "",
};

const app = useTestApp();
beforeAll(async () => {
  const operator = operatorOf(app);
  const valid = await createTestKey(operator);
  secrets.valid = valid.secret;
  secrets.mistyped = mistyped(valid.secret);
  const revoked = await createTestKey(operator, { accountId: valid.accountId });
  await operator.revokeKey({ keyId: revoked.id });
  secrets.revoked = revoked.secret;
  const expired = await createTestKey(operator, { accountId: valid.accountId });
  await app.database.owner`UPDATE vx.keys SET expires_at = clock_timestamp() WHERE id = ${expired.id}`;
  secrets.expired = expired.secret;
  const first = await createTestKey(operator);
  const second = await createTestKey(operator, { accountId: first.accountId });
  await operator.revokeKey({ keyId: first.id });
  await app.database.owner`UPDATE vx.keys SET expires_at = clock_timestamp() WHERE id = ${second.id}`;
  await operator.suspendAccount({ accountId: first.accountId, reason: "test" });
  secrets.suspendedRevoked = first.secret;
  secrets.suspendedExpired = second.secret;
});

/** Every kind of missing or invalid key in a header, with the expected reason. */
const refused: readonly { what: string; reason: string; headers: () => Record<string, string> }[] = [
  { what: "no header", reason: "missing_api_key", headers: () => ({}) },
  {
    what: "only a cookie",
    reason: "missing_api_key",
    headers: () => ({ cookie: `session=1; authorization=Bearer ${secrets.valid}; key=${secrets.valid}` }),
  },
  {
    what: "the key in a header of another name",
    reason: "missing_api_key",
    headers: () => ({ "x-api-key": secrets.valid }),
  },
  { what: "garbage", reason: "invalid_api_key", headers: () => ({ authorization: "%%% garbage" }) },
  { what: "an empty header", reason: "invalid_api_key", headers: () => ({ authorization: "Bearer" }) },
  {
    what: "the key without a scheme",
    reason: "invalid_api_key",
    headers: () => ({ authorization: secrets.valid }),
  },
  {
    what: "another scheme",
    reason: "invalid_api_key",
    headers: () => ({ authorization: `Basic ${Buffer.from(`${secrets.valid}:`).toString("base64")}` }),
  },
  { what: "a mistyped key", reason: "invalid_api_key", headers: () => bearer(secrets.mistyped) },
  { what: "text after the key", reason: "invalid_api_key", headers: () => bearer(`${secrets.valid} x`) },
  { what: "an unknown key", reason: "invalid_api_key", headers: () => bearer(secrets.unknown) },
  { what: "a revoked key", reason: "revoked_api_key", headers: () => bearer(secrets.revoked) },
  { what: "an expired key", reason: "expired_api_key", headers: () => bearer(secrets.expired) },
  {
    what: "a revoked key of a suspended account",
    reason: "revoked_api_key",
    headers: () => bearer(secrets.suspendedRevoked),
  },
  {
    what: "an expired key of a suspended account",
    reason: "expired_api_key",
    headers: () => bearer(secrets.suspendedExpired),
  },
];

describe.each(protocols)("$name", (protocol) => {
  test.each(refused)("$what: every method returns 401 $reason", async ({ reason, headers }) => {
    const caller = openAny(protocol, app.url);
    for (const method of rpcMethods) {
      const ending = await caller.end(method, headers());
      expect(ending, method.name).toMatchObject({
        code: "unauthenticated",
        reason,
        headers: { "www-authenticate": "Bearer", "x-should-retry": "false" },
      });
      const names = Object.keys(ending.headers).join(" ");
      expect(names, method.name).not.toMatch(/set-cookie|access-control|ratelimit/);
    }
    caller.close();
  });

  test.each(["bearer", "BEARER", "Bearer  "])("the scheme may be written %j", async (scheme) => {
    const caller = openAny(protocol, app.url);
    for (const method of rpcMethods) {
      const ending = await caller.end(method, { authorization: `${scheme} ${secrets.valid}` });
      expect(ending.code, method.name).not.toBe("unauthenticated");
    }
    caller.close();
  });
});

function unknownKey(): string {
  return generateKey(7, randomBytes).secret;
}

/** The same key with its last character changed, as in a typing error. */
function mistyped(secret: string): string {
  return secret.slice(0, -1) + (secret.endsWith("0") ? "1" : "0");
}
