import { type Timestamp, timestampFromDate } from "@bufbuild/protobuf/wkt";
import { describe, expect, test, vi } from "vitest";
import { KeyService } from "../../gen/vx/v1/key_pb.js";
import { laneOfId } from "../../src/domain/lane.ts";
import { useTestApp } from "../support/app.ts";
import { createTestKey, type TestKey, useOperator } from "../support/fixtures.ts";
import { callOf, messageOf } from "../support/protocols.ts";

type Request = { scopes?: string[]; rateLimitRpm?: number; expiresAt?: Timestamp };

const app = useTestApp();
const operator = useOperator(app);
const call = callOf(app);

const create = ({ secret }: { secret: string }, request: Request = {}) =>
  call(KeyService.method.createKey, { name: "child", ...request }, secret);

async function countKeys({ accountId }: TestKey): Promise<number> {
  return (await operator.listKeys({ accountId })).apiKeys.length;
}

test.each([
  { has: ["keys"], asks: ["keys", "generate"] },
  { has: ["read", "keys"], asks: ["generate", "read", "keys"] },
  { has: ["keys"], asks: [] },
  { has: ["keys", "webhooks"], asks: ["billing"] },
  { has: ["keys", "billing"], asks: ["webhooks"] },
])("a key with $has that asks for $asks gets a 400 that names the scopes it has", async ({ has, asks }) => {
  const parent = await createTestKey(operator, { scopes: has });
  const outcome = await create(parent, { scopes: asks });
  expect(outcome).toMatchObject({ reason: "invalid_argument", fields: ["scopes"] });
  expect(outcome.ok || outcome.text).toContain(has.join(", "));
  expect(await countKeys(parent)).toBe(1);
});

test.each([
  { has: ["keys", "read"], gets: ["read"] },
  { has: ["keys", "read", "generate"], gets: ["generate", "read"] },
])("a key with $has gives $gets when the call names no scopes", async ({ has, gets }) => {
  const parent = await createTestKey(operator, { scopes: has });
  expect(await create(parent)).toMatchObject({ message: { apiKey: { scopes: gets } } });
});

test("a key gives every scope that it has", async () => {
  const scopes = ["generate", "read", "keys", "webhooks", "billing"];
  const parent = await createTestKey(operator, { scopes });
  expect(await create(parent, { scopes })).toMatchObject({ message: { apiKey: { scopes } } });
});

test("the limit is at most that of the parent, which is also the default", async () => {
  const parent = await createTestKey(operator, { plan: "pro", rateLimitRpm: 3 });
  expect(await create(parent, { rateLimitRpm: 4 })).toMatchObject({ fields: ["rate_limit_rpm"] });
  for (const request of [{ rateLimitRpm: 3 }, {}]) {
    expect(await create(parent, request)).toMatchObject({ message: { apiKey: { rateLimitRpm: 3 } } });
  }
  expect(await countKeys(parent)).toBe(3);
});

test("the expiry is at most that of the parent, which is also the default", async () => {
  const expiresAt = timestampFromDate(new Date(Date.now() + 3_600_000));
  const later = { ...expiresAt, seconds: expiresAt.seconds + 1n };
  const first = await createTestKey(operator);
  const { secret } = await operator.createKey({
    accountId: first.accountId,
    name: "parent",
    scopes: ["keys", "read"],
    expiresAt,
  });
  expect(await create({ secret }, { expiresAt: later })).toMatchObject({ reason: "invalid_argument", fields: ["expires_at"] });
  for (const request of [{ expiresAt }, {}]) {
    expect(await create({ secret }, request)).toMatchObject({ message: { apiKey: { expiresAt } } });
  }
  expect(await countKeys(first)).toBe(4);
});

describe("limits over time and over several generations of keys", () => {
  async function childOf(secret: string, request: Request = {}) {
    const outcome = await create({ secret }, { scopes: ["read", "keys"], ...request });
    const { apiKey, secret: own } = messageOf(outcome);
    return { id: apiKey?.id ?? "", secret: own };
  }

  async function limitOf({ id, accountId }: { id: string; accountId: string }) {
    const { apiKeys } = await operator.listKeys({ accountId });
    return apiKeys.find((key) => key.id === id)?.rateLimitRpm;
  }

  test("a key created by a child cannot exceed the child", async () => {
    const parent = await createTestKey(operator, { plan: "pro", rateLimitRpm: 100 });
    const child = await childOf(parent.secret, { rateLimitRpm: 10 });
    const outcome = await create(child, { rateLimitRpm: 11 });
    expect(outcome).toMatchObject({ fields: ["rate_limit_rpm"] });
    const grandchild = await childOf(child.secret);
    expect(await limitOf({ ...grandchild, accountId: parent.accountId })).toBe(10);
  });

  test("a child of a parent with a limit above the plan gets at most the limit of the plan", async () => {
    const parent = await createTestKey(operator, { plan: "pro", rateLimitRpm: 5_000 });
    const { accountId } = parent;
    expect(await create(parent, { rateLimitRpm: 601 })).toMatchObject({ fields: ["rate_limit_rpm"] });
    const child = await childOf(parent.secret);
    expect(await limitOf({ ...child, accountId })).toBe(600);
    // Also on a plan that allows more than the parent has.
    await operator.setAccountPlan({ accountId, plan: "scale" });
    expect([await limitOf(parent), await limitOf({ ...child, accountId })]).toEqual([5_000, 5_000]);
  });

  test("a child stays within the limit of its parent when the plan is raised", async () => {
    await operator.putPlan({ name: "low", rpm: 30, maxActiveKeys: 10 });
    const first = await createTestKey(operator, { plan: "pro" });
    const { accountId } = first;
    const parent = await childOf(first.secret, { rateLimitRpm: 100 });
    await operator.setAccountPlan({ accountId, plan: "low" });
    expect(await create(parent, { rateLimitRpm: 31 })).toMatchObject({ fields: ["rate_limit_rpm"] });
    const child = await childOf(parent.secret);
    expect(await limitOf({ ...child, accountId })).toBe(30);
    await operator.setAccountPlan({ accountId, plan: "scale" });
    expect(await limitOf({ ...child, accountId })).toBe(100);
  });
});

// test/database/prove.test.ts has the withdrawal of a right during a change.
test("the child gets the limit that the parent has when the key is created, not when the call is admitted", async () => {
  const parent = await createTestKey(operator);
  const { owner } = app.database;
  const { created } = await owner.begin(async (sql) => {
    await sql`SELECT FROM vx.lanes WHERE lane = ${laneOfId(parent.accountId)} FOR UPDATE`;
    const created = create(parent);
    await vi.waitFor(async () => {
      const waiting = await owner`
        SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
          AND query LIKE '%create_key(%' AND pid <> pg_backend_pid()`;
      expect(waiting).toHaveLength(1);
    });
    await owner`UPDATE vx.keys SET rate_limit_rpm = 7 WHERE id = ${parent.id}`;
    return { created };
  });
  expect(await created).toMatchObject({ message: { apiKey: { rateLimitRpm: 7 } } });
});
