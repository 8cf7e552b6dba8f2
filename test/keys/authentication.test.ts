import { randomBytes } from "node:crypto";
import type { DescMethod } from "@bufbuild/protobuf";
import { beforeAll, expect, test } from "vitest";
import { GenerateService } from "../../gen/vx/v1/generate_pb.js";
import { MeService } from "../../gen/vx/v1/me_pb.js";
import { generateKey } from "../../src/domain/credentials.ts";
import { callAny, openAny, QUICKEST, rpcMethods } from "../support/any-method.ts";
import { useTestApp } from "../support/app.ts";
import { createTestKey, operatorOf, type TestKey } from "../support/fixtures.ts";
import { bearer, type ProtocolCase, protocols } from "../support/protocols.ts";

const secrets = { valid: "", mistyped: "", revoked: "", expired: "", suspendedRevoked: "", suspendedExpired: "" };
const unknown = generateKey(7, randomBytes).secret;

const app = useTestApp();
beforeAll(async () => {
  const operator = operatorOf(app);
  const revoke = async ({ id, secret }: TestKey) => {
    await operator.revokeKey({ keyId: id });
    return secret;
  };
  const expire = async ({ id, secret }: TestKey) => {
    await app.database.owner`UPDATE vx.keys SET expires_at = clock_timestamp() WHERE id = ${id}`;
    return secret;
  };
  const { accountId, secret } = await createTestKey(operator);
  secrets.valid = secret;
  // Its last character is changed, as in a typing error.
  secrets.mistyped = secret.slice(0, -1) + (secret.endsWith("0") ? "1" : "0");
  secrets.revoked = await revoke(await createTestKey(operator, { accountId }));
  secrets.expired = await expire(await createTestKey(operator, { accountId }));
  const first = await createTestKey(operator);
  secrets.suspendedRevoked = await revoke(first);
  secrets.suspendedExpired = await expire(await createTestKey(operator, { accountId: first.accountId }));
  await operator.suspendAccount({ accountId: first.accountId, reason: "test" });
});

type Refusal = readonly [what: string, reason: string, headers: () => Record<string, string>];

/** Every kind of missing or invalid key in a header, with the expected reason. */
const refused: readonly Refusal[] = [
  ["no header", "missing_api_key", () => ({})],
  ["only a cookie", "missing_api_key", () => ({ cookie: `s=1; authorization=${token()}; key=${secrets.valid}` })],
  ["the key in a header of another name", "missing_api_key", () => ({ "x-api-key": secrets.valid })],
  ["garbage", "invalid_api_key", () => ({ authorization: "%%% garbage" })],
  ["an empty header", "invalid_api_key", () => ({ authorization: "Bearer" })],
  ["the key without a scheme", "invalid_api_key", () => ({ authorization: secrets.valid })],
  ["another scheme", "invalid_api_key", () => ({ authorization: `Basic ${btoa(`${secrets.valid}:`)}` })],
  ["a mistyped key", "invalid_api_key", () => bearer(secrets.mistyped)],
  ["text after the key", "invalid_api_key", () => bearer(`${secrets.valid} x`)],
  ["an unknown key", "invalid_api_key", () => bearer(unknown)],
  ["a revoked key", "revoked_api_key", () => bearer(secrets.revoked)],
  ["an expired key", "expired_api_key", () => bearer(secrets.expired)],
  ["a revoked key of a suspended account", "revoked_api_key", () => bearer(secrets.suspendedRevoked)],
  ["an expired key of a suspended account", "expired_api_key", () => bearer(secrets.suspendedExpired)],
];
const token = () => `Bearer ${secrets.valid}`;
/** A unary method, and a stream. */
const samples = [MeService.method.getMe, GenerateService.method.streamGenerate];

async function expect401(protocol: ProtocolCase, methods: readonly DescMethod[], [, reason, headers]: Refusal) {
  const caller = openAny(protocol, app.url);
  for (const method of methods) {
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
}

test.each(refused)("%s: 401 %s", async (...refusal) => {
  await expect401(QUICKEST, samples, refusal);
});

test.each(protocols)("every method returns 401 without a key over $name", async (protocol) => {
  await expect401(protocol, protocol === QUICKEST ? rpcMethods : samples, refused[0] as Refusal);
});

test("every method returns 401 for an unknown key, and accepts a valid one", async () => {
  await expect401(QUICKEST, rpcMethods, ["an unknown key", "invalid_api_key", () => bearer(unknown)]);
  const end = callAny(app);
  for (const method of rpcMethods) expect((await end(method, secrets.valid)).code, method.name).not.toBe("unauthenticated");
});

test.each(["bearer", "BEARER", "Bearer  "])("the scheme may be written %j", async (scheme) => {
  const caller = openAny(QUICKEST, app.url);
  const ending = await caller.end(MeService.method.getMe, { authorization: `${scheme} ${secrets.valid}` });
  expect(ending.code).toBe("ok");
  caller.close();
});
