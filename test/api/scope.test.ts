import type { DescMethod } from "@bufbuild/protobuf";
import { beforeAll, describe, expect, test } from "vitest";
import { KeyService } from "../../gen/vx/v1/key_pb.js";
import { LedgerService } from "../../gen/vx/v1/ledger_pb.js";
import { SCOPES, type Scope } from "../../src/domain/scope.ts";
import { policyOf } from "../../src/rules/policy.ts";
import { openAny, rpcMethods } from "../support/any-method.ts";
import { useTestApp } from "../support/app.ts";
import { createTestAccount, createTestKey, useOperator } from "../support/fixtures.ts";
import { withinOneMinute } from "../support/minute.ts";
import { bearer, protocols } from "../support/protocols.ts";

const secrets = new Map<Scope, string>();

const app = useTestApp();
const operator = useOperator(app);
beforeAll(async () => {
  const accountId = await createTestAccount(operator);
  for (const scope of SCOPES) {
    secrets.set(scope, (await createTestKey(operator, { accountId, scopes: [scope] })).secret);
  }
});

const others = (method: DescMethod) => SCOPES.filter((scope) => scope !== policyOf(method).scope);

describe.each(protocols)("$name", (protocol) => {
  const methods = rpcMethods.map((method) => ({
    name: method.name,
    method,
    needs: policyOf(method).scope,
  }));

  test.each(methods.filter(({ needs }) => needs !== undefined))(
    "$name requires the scope $needs: other keys get 403",
    async ({ method, needs }) => {
      const caller = openAny(protocol, app.url);
      for (const scope of others(method)) {
        const ending = await caller.end(method, bearer(secrets.get(scope) ?? ""));
        expect(ending, scope).toMatchObject({
          code: "permission_denied",
          reason: "insufficient_scope",
          headers: { "x-should-retry": "false" },
        });
        expect("ratelimit" in ending.headers, scope).toBe(policyOf(method).rateLimited);
      }
      const ending = await caller.end(method, bearer(secrets.get(needs as Scope) ?? ""));
      expect(ending.code).not.toBe("permission_denied");
      expect(ending.code).not.toBe("unauthenticated");
      caller.close();
    },
  );

  test.each(methods.filter(({ needs }) => needs === undefined))(
    "$name accepts a key with any scope",
    async ({ method }) => {
      const caller = openAny(protocol, app.url);
      for (const scope of SCOPES) {
        const { code } = await caller.end(method, bearer(secrets.get(scope) ?? ""));
        // An empty request names no key to revoke.
        expect(code, scope).toMatch(/^(ok|invalid_argument)$/);
      }
      caller.close();
    },
  );

  test("a 403 names the scope and does not count against the rate limit", async () => {
    await withinOneMinute(async () => {
      const { secret } = await createTestKey(operator, { scopes: ["read"], rateLimitRpm: 3 });
      const caller = openAny(protocol, app.url);
      for (const method of rpcMethods) {
        if (policyOf(method).scope === "read" || policyOf(method).scope === undefined) continue;
        expect(await caller.end(method, bearer(secret)), method.name).toMatchObject({
          reason: "insufficient_scope",
          headers: { "x-ratelimit-limit-requests": "3", "x-ratelimit-remaining-requests": "3" },
        });
      }
      caller.close();
      const unary = protocol.open(app.url);
      const outcome = await unary.call(LedgerService.method.listEntries, {}, bearer(secret));
      expect(outcome.headers["x-ratelimit-remaining-requests"]).toBe("2");
      const refused = await unary.call(KeyService.method.listKeys, {}, bearer(secret));
      expect(refused.headers["x-ratelimit-remaining-requests"]).toBe("2");
      unary.close();
    });
  });
});

test("the metadata of the error contains the missing scope", async () => {
  const caller = protocols[0]?.open(app.url);
  const secret = secrets.get("generate") ?? "";
  const outcome = await caller?.call(LedgerService.method.listEntries, {}, bearer(secret));
  expect(outcome).toMatchObject({ reason: "insufficient_scope", metadata: { scope: "read" } });
  caller?.close();
});
