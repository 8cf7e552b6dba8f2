import { randomBytes } from "node:crypto";
import { beforeAll, expect, test } from "vitest";
import { setAccountPlan } from "../../src/accounts/store.ts";
import { generateKey } from "../../src/domain/credentials.ts";
import { laneOfId } from "../../src/domain/lane.ts";
import { createKey, revokeKey } from "../../src/keys/store.ts";
import { putPlan } from "../../src/plans/store.ts";
import { actionOfKey, TEST_ACTION } from "../support/action.ts";
import { createPayer, type Payer } from "../support/payer.ts";
import { useStore } from "../support/store.ts";
import { typeIds } from "../support/type-ids.ts";

const CAP = 7;
const store = useStore();
let payer: Payer;

beforeAll(async () => {
  for (const [name, max_active_keys] of [
    ["seven", CAP],
    ["five", 5],
  ] as const)
    await putPlan(store.database, TEST_ACTION, { name, rpm: 6_000, max_active_keys, max_keys_created_per_hour: undefined });
});

const moveTo = (plan: string) => setAccountPlan(store.database, TEST_ACTION, payer.accountId, plan);

async function create(action = TEST_ACTION): Promise<string> {
  const lane = laneOfId(payer.accountId);
  const key = { id: typeIds.key(lane), accountId: payer.accountId, columns: { name: "key" } };
  return (await createKey(store.database, action, key, generateKey(lane, randomBytes))).id;
}

/** The numbers of active keys on each plan. */
const activeKeys = () => store.owner<{ plan: string; active: number }[]>`
  SELECT plan, count(*)::int AS active FROM vx.keys WHERE account_id = ${payer.accountId} AND revoked_at IS NULL GROUP BY plan`;

test("50 concurrent creations leave exactly the plan's maximum of active keys", async () => {
  payer = await createPayer(store.database, 0n);
  await moveTo("seven");
  const outcomes = await Promise.allSettled(Array.from({ length: 50 }, () => create(actionOfKey(payer))));
  const refused = outcomes.filter(({ status }) => status === "rejected");
  expect(refused).toMatchObject(Array(50 - (CAP - 1)).fill({ reason: { reason: "key_limit_reached" } }));
  expect(await activeKeys()).toEqual([{ plan: "seven", active: CAP }]);
});

test("concurrent creations, revocations and a change of plan never exceed the maximum of a plan", async () => {
  payer = await createPayer(store.database, 0n);
  await moveTo("seven");
  const counts = await Promise.all(
    Array.from({ length: 60 }, async (_, i) => {
      if (i % 10 === 9) await moveTo(i % 20 === 9 ? "five" : "seven").catch(() => undefined);
      // Some creations are refused.
      const id = await create().catch(() => undefined);
      if (i % 3 === 0 && id !== undefined) await revokeKey(store.database, TEST_ACTION, id);
      return await activeKeys();
    }),
  );
  expect(Math.max(...counts.flat().map(({ active }) => active))).toBeLessThanOrEqual(CAP);
  const left = await activeKeys();
  expect(left).not.toEqual([]);
  for (const { plan, active } of left) expect(active).toBeLessThanOrEqual(plan === "five" ? 5 : CAP);
});
