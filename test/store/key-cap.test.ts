import { afterAll, beforeAll, expect, test } from "vitest";
import { KeyService } from "../../gen/vx/v1/key_pb.js";
import { startTestApp, type TestApp } from "../support/app.ts";
import { createTestAccount, createTestKey, type Operator, operatorOf } from "../support/fixtures.ts";
import { bearer, type Caller, protocols } from "../support/protocols.ts";

const CAP = 7;
let servers: TestApp[];
let owner: TestApp["database"]["owner"];
let operators: Operator[];
let callers: Caller[];

beforeAll(async () => {
  const first = await startTestApp();
  servers = [first, await startTestApp({ database: first.database })];
  owner = first.database.owner;
  operators = servers.map((server) => operatorOf(server));
  callers = servers.flatMap(({ url }) => protocols.map(({ open }) => open(url)));
  await operators[0]?.putPlan({ name: "seven", rpm: 6000, maxActiveKeys: CAP });
});
afterAll(async () => {
  for (const caller of callers) caller.close();
  for (const server of [...servers].reverse()) await server.stop();
});

test("50 concurrent creations over two servers leave exactly the plan's maximum of active keys", async () => {
  const calling = await createTestKey(operators[0] as Operator, { plan: "seven" });
  const outcomes = await Promise.all(
    Array.from({ length: 50 }, (_, i) =>
      (callers[i % callers.length] as Caller).call(KeyService.method.createKey, { name: `key ${i}` }, bearer(calling.secret)),
    ),
  );
  const reasons = outcomes.map((outcome) => (outcome.ok ? "ok" : outcome.reason));
  expect(reasons.filter((reason) => reason === "ok")).toHaveLength(CAP - 1);
  expect(reasons.filter((reason) => reason === "key_limit_reached")).toHaveLength(50 - (CAP - 1));
  expect(await mostActiveKeys(calling.accountId)).toBe(CAP);
});

test("concurrent creations, revocations and a change of plan never exceed the maximum of a plan", async () => {
  const [operator] = operators as [Operator];
  await operator.putPlan({ name: "five", rpm: 6000, maxActiveKeys: 5 });
  const accountId = await createTestAccount(operator, "seven");
  const steps = Array.from({ length: 60 }, async (_, i) => {
    const on = operators[i % operators.length] as Operator;
    try {
      if (i % 10 === 9) await on.setAccountPlan({ accountId, plan: i % 20 === 9 ? "five" : "seven" });
      const { apiKey } = await on.createKey({ accountId, name: `key ${i}` });
      if (i % 3 === 0 && apiKey) await on.revokeKey({ keyId: apiKey.id });
    } catch {
      // Some creations are rejected; the test counts the remaining keys.
    }
    return await mostActiveKeys(accountId);
  });
  const counts = await Promise.all(steps);
  expect(Math.max(...counts)).toBeLessThanOrEqual(CAP);
  const byPlan = await owner<{ plan: string; active: number }[]>`
    SELECT plan, count(*)::int AS active FROM vx.keys
    WHERE account_id = ${accountId} AND revoked_at IS NULL GROUP BY plan`;
  expect(byPlan.length).toBeGreaterThan(0);
  for (const { plan, active } of byPlan) expect(active).toBeLessThanOrEqual(plan === "five" ? 5 : CAP);
});

/** The number of active keys on the plan with the most of them. */
async function mostActiveKeys(accountId: string): Promise<number> {
  const [row] = await owner<{ active: number }[]>`
    SELECT max(active)::int AS active FROM (
      SELECT count(*) AS active FROM vx.keys WHERE account_id = ${accountId} AND revoked_at IS NULL GROUP BY plan
    ) plans`;
  return row?.active ?? 0;
}
