import { beforeAll, expect, test } from "vitest";
import { KeyService } from "../../../gen/vx/v1/key_pb.js";
import { useTestApp } from "../../support/app.ts";
import { createTestAccount, createTestKey, useOperator } from "../../support/fixtures.ts";
import { callOf } from "../../support/protocols.ts";

const app = useTestApp();
const operator = useOperator(app);
const call = callOf(app);
beforeAll(async () => {
  await operator.putPlan({ name: "two-keys", rpm: 600, maxActiveKeys: 2 });
});

/** An account with the maximum number of active keys: the calling one, and the one with the id. */
async function fullAccount() {
  const calling = await createTestKey(operator, { plan: "two-keys" });
  const create = () => call(KeyService.method.createKey, { name: "ci" }, calling.secret);
  const second = await create();
  const id = second.ok ? (second.message.apiKey?.id ?? "") : "";
  return { calling, create, id };
}

test("a key above the maximum of the plan is a 409 that names plan and maximum", async () => {
  const { calling, create } = await fullAccount();
  const outcome = await create();
  expect(outcome).toMatchObject({
    code: "failed_precondition",
    reason: "key_limit_reached",
    metadata: { plan: "two-keys", max_active_keys: "2" },
  });
  expect(outcome.ok || outcome.details.sort()).toEqual(["ErrorInfo", "QuotaFailure"]);
  expect((await operator.listKeys({ accountId: calling.accountId })).apiKeys).toHaveLength(2);
});

test.each([
  ["revoked", (id: string) => operator.revokeKey({ keyId: id })],
  ["expired", (id: string) => app.database.owner`UPDATE vx.keys SET expires_at = clock_timestamp() WHERE id = ${id}`],
])("%s keys do not count", async (_, end) => {
  const { create, id } = await fullAccount();
  await end(id);
  expect([(await create()).ok, (await create()).ok]).toEqual([true, false]);
});

test("keys on other plans and of other accounts do not count", async () => {
  const accountId = await createTestAccount(operator, "two-keys");
  await createTestKey(operator, { accountId, plan: "pro" });
  await createTestKey(operator, { plan: "two-keys" });
  const calling = await createTestKey(operator, { accountId, plan: "two-keys" });
  const outcome = await call(KeyService.method.createKey, { name: "ci" }, calling.secret);
  expect(outcome.ok).toBe(true);
});
