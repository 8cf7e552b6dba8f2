import { beforeAll, describe, expect, test } from "vitest";
import { KeyService } from "../../gen/vx/v1/key_pb.js";
import { MeService } from "../../gen/vx/v1/me_pb.js";
import { useTestApp } from "../support/app.ts";
import { createTestKey, type TestKey, useOperator } from "../support/fixtures.ts";
import { withinOneMinute } from "../support/minute.ts";
import { callOf } from "../support/protocols.ts";

const createKey = KeyService.method.createKey;
const LIMIT = 3;
const REFUSED = "key_creation_limit_reached";

const app = useTestApp();
const operator = useOperator(app);
const call = callOf(app);
beforeAll(async () => {
  const plan = { name: "three", rpm: 6000, maxActiveKeys: 100, maxKeysCreatedPerHour: LIMIT };
  await operator.putPlan(plan);
  await operator.putPlan({ name: "two-keys", rpm: 6000, maxActiveKeys: 2 });
});

/** Runs within one clock hour, with a key on the plan. */
async function withKey(attempt: (create: (name?: string) => ReturnType<typeof call>, key: TestKey) => Promise<void>) {
  await withinOneMinute(async () => {
    const key = await createTestKey(operator, { plan: "three" });
    await attempt((name = "child") => call(createKey, { name }, key.secret), key);
  });
}

async function reasonsOf(create: () => ReturnType<typeof call>, times: number) {
  const reasons = [];
  for (let i = 0; i < times; i++) {
    const outcome = await create();
    reasons.push(outcome.ok ? "ok" : outcome.reason);
  }
  return reasons;
}

const upToLimit = [...Array<string>(LIMIT).fill("ok"), REFUSED];

test("a key above the limit per hour is a 429 with the end of the hour", () =>
  withKey(async (create, { accountId }) => {
    expect(await reasonsOf(create, LIMIT)).toEqual(upToLimit.slice(0, LIMIT));
    const atMost = secondsToNextHour();
    const outcome = await create();
    expect(outcome).toMatchObject({
      code: "resource_exhausted",
      reason: REFUSED,
      metadata: { plan: "three", max_keys_created_per_hour: String(LIMIT) },
    });
    expect(outcome.ok || outcome.details.sort()).toEqual(["ErrorInfo", "QuotaFailure", "RetryInfo"]);
    expect(outcome.headers["x-should-retry"]).toBe("false");
    const seconds = Number(outcome.headers["retry-after"]);
    expect(seconds).toBeLessThanOrEqual(atMost);
    expect(seconds).toBeGreaterThanOrEqual(secondsToNextHour());
    expect((await operator.listKeys({ accountId })).apiKeys).toHaveLength(1 + LIMIT);
  }));

test("a loop that creates, uses and revokes keys is limited to ten times the active keys", async () => {
  await withinOneMinute(async () => {
    const { secret } = await createTestKey(operator, { plan: "two-keys" });
    const reasons = await reasonsOf(async () => {
      const outcome = await call(createKey, { name: "child" }, secret);
      if (outcome.ok) {
        const keyId = outcome.message.apiKey?.id ?? "";
        expect(await call(MeService.method.getMe, {}, outcome.message.secret)).toMatchObject({ ok: true });
        await call(KeyService.method.revokeKey, { keyId }, secret);
      }
      return outcome;
    }, 22);
    expect(reasons).toEqual([...Array<string>(20).fill("ok"), REFUSED, REFUSED]);
  });
});

test("concurrent creations with several keys succeed exactly up to the limit", async () => {
  await withinOneMinute(async () => {
    const first = await createTestKey(operator, { plan: "three" });
    const other = await createTestKey(operator, { plan: "three", accountId: first.accountId });
    const outcomes = await Promise.all(
      Array.from({ length: 48 }, (_, i) => call(createKey, { name: `child ${i}` }, (i % 2 === 0 ? first : other).secret)),
    );
    const reasons = outcomes.map((outcome) => (outcome.ok ? "ok" : outcome.reason));
    expect(reasons.filter((reason) => reason === "ok")).toHaveLength(LIMIT);
    expect(reasons.filter((reason) => reason === REFUSED)).toHaveLength(48 - LIMIT);
    const { apiKeys } = await operator.listKeys({ accountId: first.accountId });
    expect(apiKeys).toHaveLength(2 + LIMIT);
  });
});

test("only keys created with keys of the same account count", () =>
  withKey(async (create, { accountId, secret }) => {
    for (let i = 0; i <= LIMIT; i++) await createTestKey(operator, { accountId, plan: "three" });
    const other = await createTestKey(operator, { plan: "three" });
    await reasonsOf(() => call(createKey, { name: "child" }, other.secret), LIMIT);
    const refused = { name: "child", rateLimitRpm: 6001 };
    for (let i = 0; i <= LIMIT; i++) expect(await call(createKey, refused, secret)).toMatchObject({ reason: "invalid_argument" });
    expect(await reasonsOf(create, LIMIT + 1)).toEqual(upToLimit);
  }));

test("a creation rejected because of the active keys does not count", async () => {
  await operator.putPlan({ name: "cap", rpm: 6000, maxActiveKeys: 2, maxKeysCreatedPerHour: 2 });
  await withinOneMinute(async () => {
    const { secret } = await createTestKey(operator, { plan: "cap" });
    const create = () => call(createKey, { name: "child" }, secret);
    const first = await create();
    expect(await reasonsOf(create, 3)).toEqual(Array(3).fill("key_limit_reached"));
    await operator.revokeKey({ keyId: (first.ok && first.message.apiKey?.id) || "" });
    expect(await reasonsOf(create, 2)).toEqual(["ok", REFUSED]);
  });
});

test("a changed limit of the plan applies to the next creation", async () => {
  const put = (maxKeysCreatedPerHour: number) =>
    operator.putPlan({ name: "moving", rpm: 6000, maxActiveKeys: 100, maxKeysCreatedPerHour });
  await withinOneMinute(async () => {
    await put(1);
    const { secret } = await createTestKey(operator, { plan: "moving" });
    const create = () => call(createKey, { name: "child" }, secret);
    expect(await reasonsOf(create, 2)).toEqual(["ok", REFUSED]);
    await put(3);
    expect(await reasonsOf(create, 3)).toEqual(["ok", "ok", REFUSED]);
    await put(2);
    expect(await reasonsOf(create, 1)).toEqual([REFUSED]);
  });
});

describe("the hour of the database clock", () => {
  const shiftHour = ({ accountId }: TestKey, hours: number) =>
    app.database.owner`UPDATE vx.key_creations SET hour = hour + ${hours} WHERE account_id = ${accountId}`;

  test("the next hour has the full limit", () =>
    withKey(async (create, key) => {
      expect(await reasonsOf(create, LIMIT + 1)).toEqual(upToLimit);
      await shiftHour(key, -1);
      expect(await reasonsOf(create, LIMIT + 1)).toEqual(upToLimit);
    }));

  test("after the clock is set back by one hour, creations count in the later hour", () =>
    withKey(async (create, key) => {
      expect(await reasonsOf(create, 1)).toEqual(["ok"]);
      await shiftHour(key, 1);
      expect(await reasonsOf(create, LIMIT)).toEqual(upToLimit.slice(1));
      expect((await create()).headers["retry-after"]).toBe("3600");
    }));

  test.each([2, 8_760])("after the clock is set back by %i hours, the current hour starts with the previous count", (hours) =>
    withKey(async (create, key) => {
      expect(await reasonsOf(create, LIMIT)).toEqual(upToLimit.slice(0, LIMIT));
      await shiftHour(key, hours);
      const atMost = secondsToNextHour();
      const outcome = await create();
      expect(outcome).toMatchObject({ reason: REFUSED });
      const seconds = Number(outcome.headers["retry-after"]);
      expect(seconds).toBeLessThanOrEqual(atMost);
      expect(seconds).toBeGreaterThanOrEqual(secondsToNextHour());
      // A rejected creation updates the hour too, so the next hour has the full limit.
      await shiftHour(key, -1);
      expect(await reasonsOf(create, LIMIT + 1)).toEqual(upToLimit);
    }),
  );
});

function secondsToNextHour(): number {
  return 3_600 - (Math.floor(Date.now() / 1_000) % 3_600);
}
