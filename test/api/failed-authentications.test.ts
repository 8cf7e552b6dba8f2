import { randomBytes } from "node:crypto";
import { Code, type ConnectError } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { LedgerService } from "../../gen/vx/v1/ledger_pb.js";
import { MeService } from "../../gen/vx/v1/me_pb.js";
import { generateKey, generateOperatorToken } from "../../src/domain/credentials.ts";
import { QUICKEST } from "../support/any-method.ts";
import { startTestApp, type TestApp } from "../support/app.ts";
import { createTestKey, operatorOf, type TestKey } from "../support/fixtures.ts";
import { withinOneMinute } from "../support/minute.ts";
import { bearer } from "../support/protocols.ts";

const getMe = MeService.method.getMe;

test("the call after the allowed number of unknown keys in a minute gets 429", async () => {
  await withServer(async (app) => {
    const caller = QUICKEST.open(app.url);
    const outcomes = [];
    for (let i = 0; i < 5; i++) outcomes.push(await caller.call(getMe, {}, bearer(unknown())));
    caller.close();
    expect(outcomes.map((outcome) => outcome.ok || outcome.reason)).toEqual([
      "invalid_api_key",
      "invalid_api_key",
      "invalid_api_key",
      "too_many_failed_authentications",
      "too_many_failed_authentications",
    ]);
    const [last] = outcomes.slice(-1);
    expect(last).toMatchObject({ code: "resource_exhausted", details: ["ErrorInfo", "RetryInfo"] });
    const seconds = Number(last?.headers["retry-after"]);
    expect(seconds).toBeGreaterThanOrEqual(1);
    expect(seconds).toBeLessThanOrEqual(60);
  });
});
type Spoil = (app: TestApp, key: TestKey) => Promise<unknown>;

const spoiled: readonly { readonly state: string; readonly reason: string; readonly spoil: Spoil }[] = [
  { state: "revoked", reason: "revoked_api_key", spoil: (app, { id }) => operatorOf(app).revokeKey({ keyId: id }) },
  {
    state: "expired",
    reason: "expired_api_key",
    spoil: (app, { id }) => app.database.owner`UPDATE vx.keys SET expires_at = clock_timestamp() WHERE id = ${id}`,
  },
];

describe.each(spoiled)("a used key that is now $state", ({ reason, spoil }) => {
  const limited = "too_many_failed_authentications";

  test("counts as a failed authentication", async () => {
    await withServer(async (app) => {
      const key = await createTestKey(operatorOf(app));
      const caller = QUICKEST.open(app.url);
      const call = () => caller.call(getMe, {}, bearer(key.secret));
      const outcomes = [await call()];
      await spoil(app, key);
      for (let i = 0; i < 5; i++) outcomes.push(await call());
      caller.close();
      const reasons = outcomes.map((outcome) => outcome.ok || outcome.reason);
      expect(reasons).toEqual([true, reason, reason, reason, limited, limited]);
      expect(outcomes.at(-1)?.headers["retry-after"]).toMatch(/^([1-9]|[1-5]\d|60)$/);
    });
  });

  test("does not block valid keys of the same address", async () => {
    await withServer(async (app) => {
      const operator = operatorOf(app);
      const caller = QUICKEST.open(app.url);
      const list = async ({ secret }: TestKey) => {
        const outcome = await caller.call(LedgerService.method.listEntries, {}, bearer(secret));
        return outcome.ok || outcome.reason;
      };
      const [bad, busy, narrow, fresh] = [
        await createTestKey(operator),
        await createTestKey(operator, { rateLimitRpm: 1 }),
        await createTestKey(operator, { scopes: ["generate"] }),
        await createTestKey(operator),
      ];
      await spoil(app, bad);
      // The server records these two as valid, although it rejects the calls.
      expect([await list(busy), await list(busy), await list(narrow)]).toEqual([
        true,
        "rate_limit_exceeded",
        "insufficient_scope",
      ]);
      for (let i = 0; i < 3; i++) expect(await list(bad)).toBe(reason);
      expect([await list(bad), await list(bad)]).toEqual([limited, limited]);
      expect([await list(busy), await list(narrow)]).toEqual(["rate_limit_exceeded", "insufficient_scope"]);
      // Only a look-up can tell whether an unused key is valid.
      expect(await list(fresh)).toBe(limited);
      caller.close();
    });
  });
});

test("malformed and valid keys are not counted; unknown operator tokens are counted separately", async () => {
  await withServer(async (app) => {
    const key = await createTestKey(operatorOf(app));
    const caller = QUICKEST.open(app.url);
    for (let i = 0; i < 5; i++) {
      await caller.call(getMe, {}, bearer(`${key.secret.slice(0, -1)}!`));
      await caller.call(getMe, {}, bearer(key.secret));
    }
    const guess = () =>
      operatorOf(app, generateOperatorToken(randomBytes))
        .listPlans({})
        .catch((error: ConnectError) => error.code);
    const [denied, limited] = [Code.Unauthenticated, Code.ResourceExhausted];
    expect([await guess(), await guess(), await guess(), await guess()]).toEqual([denied, denied, denied, limited]);
    // The setting's token needs no look-up, so it is never limited.
    expect((await operatorOf(app).listPlans({})).plans).toHaveLength(3);
    expect(await caller.call(getMe, {}, bearer(key.secret))).toMatchObject({ ok: true });
    caller.close();
  });
});

function unknown(): string {
  return generateKey(3, randomBytes).secret;
}

/** Each test gets a separate server, because the counts of one would affect the next. */
async function withServer(attempt: (app: TestApp) => Promise<void>): Promise<void> {
  await withinOneMinute(async () => {
    const app = await startTestApp({ env: { VX_AUTH_FAILURES_PER_MINUTE: "3" } });
    try {
      await attempt(app);
    } finally {
      await app.stop();
    }
  });
}
