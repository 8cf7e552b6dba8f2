import { describe, expect, test } from "vitest";
import { KeyService } from "../../gen/vx/v1/key_pb.js";
import { MeService } from "../../gen/vx/v1/me_pb.js";
import { useTestApp } from "../support/app.ts";
import { createTestKey, type TestKey, useOperator } from "../support/fixtures.ts";
import { callOf, messageOf } from "../support/protocols.ts";

const app = useTestApp();
const operator = useOperator(app);
const call = callOf(app);

/** A key created by its owner, with a limit. */
async function ownKey(rateLimitRpm: number): Promise<TestKey> {
  const { accountId, secret: first } = await createTestKey(operator, { plan: "pro" });
  const request = { name: "own", scopes: ["keys"], rateLimitRpm };
  const { apiKey, secret } = messageOf(await call(KeyService.method.createKey, request, first));
  return { id: apiKey?.id ?? "", secret, accountId };
}

/** The limit in GetMe, in GetKey, in the operator API, and as applied to calls. */
async function limitsOf({ id: keyId, secret, accountId }: TestKey) {
  const me = messageOf(await call(MeService.method.getMe, {}, secret));
  const view = await call(KeyService.method.getKey, { keyId }, secret);
  const { apiKeys } = await operator.listKeys({ accountId });
  const applied = Number(view.headers["x-ratelimit-limit-requests"]);
  const listed = apiKeys.find(({ id }) => id === keyId)?.rateLimitRpm;
  return [me.rateLimitRpm, messageOf(view).apiKey?.rateLimitRpm, listed, applied];
}

const all = (limit: number) => [limit, limit, limit, limit];

describe("a limit set by the owner of the key", () => {
  test("is lowered to the limit of a lower plan and restored on a higher plan", async () => {
    const key = await ownKey(500);
    expect(await limitsOf(key)).toEqual(all(500));
    await operator.putPlan({ name: "low", rpm: 30, maxActiveKeys: 10 });
    await operator.setAccountPlan({ accountId: key.accountId, plan: "low" });
    expect(await limitsOf(key)).toEqual(all(30));
    await operator.putPlan({ name: "low", rpm: 40, maxActiveKeys: 10 });
    expect(await limitsOf(key)).toEqual(all(40));
    await operator.setAccountPlan({ accountId: key.accountId, plan: "pro" });
    expect(await limitsOf(key)).toEqual(all(500));
  });

  test("stays the same on a plan with a higher limit", async () => {
    const key = await ownKey(7);
    await operator.setAccountPlan({ accountId: key.accountId, plan: "scale" });
    expect(await limitsOf(key)).toEqual(all(7));
  });
});

describe("a limit set by an operator", () => {
  test("can exceed the plan and stays the same when the plan is lowered", async () => {
    const key = await ownKey(5);
    await operator.putPlan({ name: "lower", rpm: 20, maxActiveKeys: 10 });
    await operator.setKeyLimit({ keyId: key.id, rateLimitRpm: 900 });
    await operator.setAccountPlan({ accountId: key.accountId, plan: "lower" });
    expect(await limitsOf(key)).toEqual(all(900));
    await operator.setKeyLimit({ keyId: key.id });
    expect(await limitsOf(key)).toEqual(all(20));
  });

  test("can be set when the key is created", async () => {
    const key = await createTestKey(operator, { plan: "pro", rateLimitRpm: 5_000 });
    expect(await limitsOf(key)).toEqual(all(5_000));
  });
});
