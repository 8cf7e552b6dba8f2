import { beforeAll, expect, test } from "vitest";
import { KeyService } from "../../gen/vx/v1/key_pb.js";
import { LedgerService } from "../../gen/vx/v1/ledger_pb.js";
import { SCOPES, type Scope } from "../../src/domain/scope.ts";
import { policyOf } from "../../src/rules/policy.ts";
import { callAny, rpcMethods } from "../support/any-method.ts";
import { useTestApp } from "../support/app.ts";
import { createTestAccount, createTestKey, useOperator } from "../support/fixtures.ts";
import { withinOneMinute } from "../support/minute.ts";
import { callOf } from "../support/protocols.ts";

const secrets = new Map<Scope, string>();

const app = useTestApp();
const operator = useOperator(app);
const [call, end] = [callOf(app), callAny(app)];
const secretOf = (scope: Scope) => secrets.get(scope) ?? "";
beforeAll(async () => {
  const accountId = await createTestAccount(operator);
  for (const scope of SCOPES) {
    secrets.set(scope, (await createTestKey(operator, { accountId, scopes: [scope] })).secret);
  }
});

test.each(rpcMethods.filter((method) => policyOf(method).scope !== undefined))(
  "$name requires its scope: other keys get 403",
  async (method) => {
    const { scope: needed, rateLimited } = policyOf(method);
    for (const scope of SCOPES) {
      const ending = await end(method, secretOf(scope));
      const headers = { "x-should-retry": "false" };
      const refused = { code: "permission_denied", reason: "insufficient_scope", headers };
      if (scope !== needed) expect(ending, scope).toMatchObject(refused);
      else expect(ending.code).not.toMatch(/permission_denied|unauthenticated/);
      expect("ratelimit" in ending.headers, scope).toBe(rateLimited);
    }
  },
);

test.each(rpcMethods.filter((method) => policyOf(method).scope === undefined))(
  "$name accepts a key with any scope",
  async (method) => {
    for (const scope of SCOPES) {
      const ending = await end(method, secretOf(scope));
      // An empty request names no key to revoke.
      expect(ending.code, scope).toMatch(/^(ok|invalid_argument)$/);
      expect("ratelimit" in ending.headers, scope).toBe(policyOf(method).rateLimited);
    }
  },
);

test("three methods take no slot of the rate limit", () => {
  const names = rpcMethods.filter((method) => !policyOf(method).rateLimited).map(({ name }) => name);
  expect(names).toEqual(["GetMe", "GetAccount", "ListLimits"]);
});

test("a 403 names the scope and does not count against the rate limit", async () => {
  await withinOneMinute(async () => {
    const { secret } = await createTestKey(operator, { scopes: ["read"], rateLimitRpm: 3 });
    const remaining = (left: string) => ({ headers: { "x-ratelimit-remaining-requests": left } });
    for (const method of rpcMethods) {
      if (policyOf(method).scope === "read" || policyOf(method).scope === undefined) continue;
      const refused = { reason: "insufficient_scope", headers: { "x-ratelimit-limit-requests": "3" } };
      const ending = await end(method, secret);
      expect(ending, method.name).toMatchObject(refused);
      expect(ending, method.name).toMatchObject(remaining("3"));
    }
    expect(await call(LedgerService.method.listEntries, {}, secret)).toMatchObject(remaining("2"));
    const refused = { ...remaining("2"), metadata: { scope: "keys" } };
    expect(await call(KeyService.method.listKeys, {}, secret)).toMatchObject(refused);
  });
});
