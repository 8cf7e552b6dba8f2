import { expect, test } from "vitest";
import { AdminService } from "../../gen/vx/admin/v1/admin_pb.js";
import { useOwnApp } from "../support/app.ts";
import { createTestAccount, createTestKey, useOperator } from "../support/fixtures.ts";
import { operatorCall } from "../support/operator.ts";

const { listPlans, putPlan, setAccountPlan } = AdminService.method;

const app = useOwnApp();
const operator = useOperator(app);

async function plansOfKeys(accountId: string): Promise<Record<string, string>> {
  const { apiKeys } = await operator.listKeys({ accountId });
  return Object.fromEntries(apiKeys.map(({ id, plan }) => [id, plan]));
}

test("the built-in plans exist", async () => {
  const { plans } = await operator.listPlans({});
  expect(plans).toMatchObject([
    { name: "free", rpm: 20, maxActiveKeys: 2, maxKeysCreatedPerHour: 20 },
    { name: "pro", rpm: 600, maxActiveKeys: 20, maxKeysCreatedPerHour: 200 },
    { name: "scale", rpm: 6000, maxActiveKeys: 100, maxKeysCreatedPerHour: 1_000 },
  ]);
});

test("plans are counted only on request", async () => {
  await operator.putPlan({ name: "counted", rpm: 1, maxActiveKeys: 5 });
  const { accountId } = await createTestKey(operator, { plan: "counted" });
  await createTestKey(operator, { accountId, plan: "counted" });
  const countsOf = async (request: object) =>
    (await operator.listPlans(request)).plans
      .filter(({ name }) => name === "counted")
      .map(({ accounts, activeKeys }) => [accounts, activeKeys]);
  expect(await countsOf({})).toEqual([[0n, 0n]]);
  expect(await countsOf({ counts: true })).toEqual([[1n, 2n]]);
});

const call = operatorCall(app);

test("PutPlan creates and updates a plan", async () => {
  for (const rpm of [1, 1_000_000]) {
    const plan = { name: "made-up_1", rpm, maxActiveKeys: rpm, maxKeysCreatedPerHour: 10 * rpm };
    expect(await call(putPlan, plan)).toMatchObject({ message: { plan } });
    const listed = await call(listPlans, {});
    expect(listed.ok && listed.message.plans.filter(({ name }) => name === plan.name)).toMatchObject([plan]);
  }
});

test("a plan without a limit on created keys allows 10 times its active keys", async () => {
  const plan = { name: "default", rpm: 1, maxActiveKeys: 7 };
  await call(putPlan, { ...plan, maxKeysCreatedPerHour: 1 });
  expect(await call(putPlan, plan)).toMatchObject({ message: { plan: { maxKeysCreatedPerHour: 70 } } });
});

const REFUSED: [what: string, change: object, field: string][] = [
  ["no name", { name: "" }, "name"],
  ["capitals in the name", { name: "Pro" }, "name"],
  ["a name of 33 characters", { name: "x".repeat(33) }, "name"],
  ["a line break after the name", { name: "x\n" }, "name"],
  ["0 requests per minute", { rpm: 0 }, "rpm"],
  ["1,000,001 requests per minute", { rpm: 1_000_001 }, "rpm"],
  ["0 keys", { maxActiveKeys: 0 }, "max_active_keys"],
  ["a negative number of keys", { maxActiveKeys: -1 }, "max_active_keys"],
  ["0 created keys", { maxKeysCreatedPerHour: 0 }, "max_keys_created_per_hour"],
  ["10,000,001 created keys", { maxKeysCreatedPerHour: 10_000_001 }, "max_keys_created_per_hour"],
];
test.each(REFUSED)("%s is a 400 that names %s", async (_, change, field) => {
  const outcome = await call(putPlan, { name: "x", rpm: 1, maxActiveKeys: 1, ...change });
  expect(outcome).toMatchObject({ reason: "invalid_argument", fields: [field] });
});

test("SetAccountPlan moves only the active keys on the previous plan", async () => {
  const accountId = await createTestAccount(operator, "pro");
  const active = await createTestKey(operator, { accountId });
  const revoked = await createTestKey(operator, { accountId });
  await operator.revokeKey({ keyId: revoked.id });
  const elsewhere = await createTestKey(operator, { accountId, plan: "free" });

  const before = await plansOfKeys(accountId);
  await call(setAccountPlan, { accountId, plan: "pro" });
  expect(await plansOfKeys(accountId)).toEqual(before);
  const account = { id: accountId, plan: "scale" };
  expect(await call(setAccountPlan, { accountId, plan: "scale" })).toMatchObject({ message: { account } });
  expect(await plansOfKeys(accountId)).toEqual({ [active.id]: "scale", [revoked.id]: "pro", [elsewhere.id]: "free" });
  const { apiKey } = await operator.createKey({ accountId, name: "new" });
  expect(apiKey).toMatchObject({ plan: "scale", rateLimitRpm: 6000 });
});

test("SetAccountPlan with more keys than the new plan allows, also of those that it has, is rejected and changes nothing", async () => {
  for (const plans of [
    ["pro", "pro", "pro"],
    ["free", "free", "pro"],
  ]) {
    const accountId = await createTestAccount(operator, "pro");
    for (const plan of plans) await createTestKey(operator, { accountId, plan });
    const before = await plansOfKeys(accountId);
    expect(await call(setAccountPlan, { accountId, plan: "free" })).toMatchObject({
      ...{ code: "failed_precondition", reason: "key_limit_reached", metadata: { plan: "free", max_active_keys: "2" } },
    });
    expect(await plansOfKeys(accountId)).toEqual(before);
    expect((await operator.getAccount({ accountId })).account?.plan).toBe("pro");
  }
});

test("SetAccountPlan rejects unknown plans and accounts", async () => {
  const accountId = await createTestAccount(operator, "pro");
  expect(await call(setAccountPlan, { accountId, plan: "gold" })).toMatchObject({ fields: ["plan"] });
  expect(await call(setAccountPlan, { accountId, plan: "" })).toMatchObject({ fields: ["plan"] });
  expect(await call(setAccountPlan, { accountId: "acct_none", plan: "pro" })).toMatchObject({ reason: "not_found" });
});
