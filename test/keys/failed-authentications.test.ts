import { randomBytes } from "node:crypto";
import { Code, type ConnectError } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { LedgerService } from "../../gen/vx/v1/ledger_pb.js";
import { generateOperatorToken } from "../../src/domain/credentials.ts";
import { QUICKEST } from "../support/any-method.ts";
import { useOwnApp } from "../support/app.ts";
import { createTestKey, operatorOf, type TestKey, useOperator } from "../support/fixtures.ts";
import { withinOneMinute } from "../support/minute.ts";
import { bearer } from "../support/protocols.ts";
import { started } from "../support/started.ts";

// test/protocols/limits.test.ts has unknown keys, and the refusal in every protocol.
const app = useOwnApp({ env: { VX_AUTH_FAILURES_PER_MINUTE: "3", VX_TRUSTED_PROXIES: "127.0.0.1,::1" } });
const operator = useOperator(app);
const caller = started(() => QUICKEST.open(app.url));
const LIMITED = "too_many_failed_authentications";

let addresses = 0;
/** Runs within one minute, with calls from an address that no other test uses. They return true, or why they were refused. */
const fromNewAddress = (attempt: (list: (key: Pick<TestKey, "secret">) => Promise<string | true>) => Promise<void>) =>
  withinOneMinute(async () => {
    const address = { "x-forwarded-for": `203.0.113.${++addresses}` };
    await attempt(async ({ secret }) => {
      const outcome = await caller.call(LedgerService.method.listEntries, {}, { ...bearer(secret), ...address });
      return outcome.ok || outcome.reason;
    });
  });

test.each<[string, (key: TestKey) => PromiseLike<unknown>]>([
  ["revoked_api_key", ({ id }) => operator.revokeKey({ keyId: id })],
  ["expired_api_key", ({ id }) => app.database.owner`UPDATE vx.keys SET expires_at = clock_timestamp() WHERE id = ${id}`],
])("a used key that has become a %s counts, and does not block valid keys of the same address", async (reason, spoil) => {
  await fromNewAddress(async (list) => {
    const [bad, busy, narrow, fresh] = [
      await createTestKey(operator),
      await createTestKey(operator, { rateLimitRpm: 1 }),
      await createTestKey(operator, { scopes: ["generate"] }),
      await createTestKey(operator),
    ];
    expect(await list(bad)).toBe(true);
    await spoil(bad);
    // The server records these two as valid, although it rejects the calls.
    const valid = [await list(busy), await list(busy), await list(narrow)];
    expect(valid).toEqual([true, "rate_limit_exceeded", "insufficient_scope"]);
    for (const expected of [reason, reason, reason, LIMITED, LIMITED]) expect(await list(bad)).toBe(expected);
    expect([await list(busy), await list(narrow)]).toEqual(["rate_limit_exceeded", "insufficient_scope"]);
    // Only a look-up can tell whether an unused key is valid.
    expect(await list(fresh)).toBe(LIMITED);
  });
});

test("malformed and valid keys are not counted; unknown operator tokens are counted separately", async () => {
  await fromNewAddress(async (list) => {
    const key = await createTestKey(operator);
    for (let i = 0; i < 5; i++) {
      expect(await list({ secret: `${key.secret.slice(0, -1)}!` })).toBe("invalid_api_key");
      expect(await list(key)).toBe(true);
    }
  });
  await withinOneMinute(async () => {
    const guess = async () => {
      const guessed = operatorOf(app, generateOperatorToken(randomBytes)).listPlans({});
      return await guessed.then(() => undefined).catch((error: ConnectError) => error.code);
    };
    const [denied, limited] = [Code.Unauthenticated, Code.ResourceExhausted];
    expect([await guess(), await guess(), await guess(), await guess()]).toEqual([denied, denied, denied, limited]);
    // The setting's token needs no look-up, so it is never limited.
    expect((await operator.listPlans({})).plans).toHaveLength(3);
  });
});
