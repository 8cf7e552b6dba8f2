import { beforeAll, expect, test } from "vitest";
import { LedgerService } from "../../gen/vx/v1/ledger_pb.js";
import { useTestApp } from "../support/app.ts";
import { createTestKey, type TestKeyOptions, useOperator } from "../support/fixtures.ts";
import { withinOneMinute } from "../support/minute.ts";
import { callOf } from "../support/protocols.ts";

const listEntries = LedgerService.method.listEntries;

// test/protocols/limits.test.ts has the headers and the refusal.
const app = useTestApp();
const operator = useOperator(app);
const call = callOf(app);
beforeAll(async () => {
  await operator.putPlan({ name: "small", rpm: 3, maxActiveKeys: 1_000 });
});

/** Runs within one clock minute, with a separate key. */
const withKey = async (
  options: TestKeyOptions,
  attempt: (take: () => ReturnType<typeof call>, key: { id: string }) => Promise<void>,
) => {
  await withinOneMinute(async () => {
    const key = await createTestKey(operator, options);
    await attempt(() => call(listEntries, {}, key.secret), key);
  });
};

test("a changed limit of the key applies to the next call", async () => {
  await withKey({ plan: "small", rateLimitRpm: 1 }, async (take, { id }) => {
    expect((await take()).ok).toBe(true);
    expect((await take()).ok).toBe(false);
    await operator.setKeyLimit({ keyId: id, rateLimitRpm: 2 });
    expect((await take()).headers["x-ratelimit-remaining-requests"]).toBe("0");
    await operator.setKeyLimit({ keyId: id, rateLimitRpm: 1 });
    expect((await take()).headers["x-ratelimit-limit-requests"]).toBe("1");
    await operator.setKeyLimit({ keyId: id });
    const outcome = await take();
    expect(outcome.ok).toBe(true);
    expect(outcome.headers["ratelimit-policy"]).toBe('"rpm";q=3;w=60');
  });
});

test("a rejected call does not count, so a raised limit allows exactly the difference", async () => {
  await withKey({ plan: "small", rateLimitRpm: 1 }, async (take, { id }) => {
    await take();
    for (let i = 0; i < 10; i++) expect((await take()).ok).toBe(false);
    await operator.setKeyLimit({ keyId: id, rateLimitRpm: 3 });
    expect([(await take()).ok, (await take()).ok, (await take()).ok]).toEqual([true, true, false]);
  });
});

test("a call that is rejected after admission counts", async () => {
  await withinOneMinute(async () => {
    const key = await createTestKey(operator, { plan: "small" });
    const refused = await call(listEntries, { pageSize: -1 }, key.secret);
    const next = await call(listEntries, {}, key.secret);
    expect(refused).toMatchObject({ reason: "invalid_argument" });
    expect(refused.headers["x-ratelimit-remaining-requests"]).toBe("2");
    expect(next.headers["x-ratelimit-remaining-requests"]).toBe("1");
  });
});

test("a new limit of the plan applies to the next call of its keys", async () => {
  await withinOneMinute(async () => {
    await operator.putPlan({ name: "growing", rpm: 1, maxActiveKeys: 1_000 });
    const { secret } = await createTestKey(operator, { plan: "growing" });
    const take = async () => (await call(listEntries, {}, secret)).ok;
    expect([await take(), await take()]).toEqual([true, false]);
    await operator.putPlan({ name: "growing", rpm: 2, maxActiveKeys: 1_000 });
    expect([await take(), await take()]).toEqual([true, false]);
  });
});
