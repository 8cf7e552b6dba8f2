import { describe, expect, test } from "vitest";
import { KeyService } from "../../gen/vx/v1/key_pb.js";
import { MeService } from "../../gen/vx/v1/me_pb.js";
import { useTestApp } from "../support/app.ts";
import { createTestKey, type TestKey, useOperator } from "../support/fixtures.ts";
import { bearer, type ProtocolCase, protocols } from "../support/protocols.ts";

const app = useTestApp();
const operator = useOperator(app);

const [protocol] = protocols as [ProtocolCase];

/** A key created by its owner, with a limit. */
async function ownKey(limit: number | undefined): Promise<TestKey> {
  const first = await createTestKey(operator, { plan: "pro" });
  const caller = protocol.open(app.url);
  const request = { name: "own", scopes: ["keys"], ...(limit === undefined ? {} : { rateLimitRpm: limit }) };
  const made = await caller.call(KeyService.method.createKey, request, bearer(first.secret));
  caller.close();
  if (!made.ok) throw new Error(made.text);
  return { id: made.message.apiKey?.id ?? "", secret: made.message.secret, accountId: first.accountId };
}

/** The limit in GetMe, in GetKey, in the operator API, and as applied to calls. */
async function limitsOf(key: TestKey): Promise<number[]> {
  const caller = protocol.open(app.url);
  const me = await caller.call(MeService.method.getMe, {}, bearer(key.secret));
  const view = await caller.call(KeyService.method.getKey, { keyId: key.id }, bearer(key.secret));
  caller.close();
  const { apiKeys } = await operator.listKeys({ accountId: key.accountId });
  if (!me.ok || !view.ok) throw new Error("the key does not work");
  return [
    me.message.rateLimitRpm,
    view.message.apiKey?.rateLimitRpm ?? 0,
    apiKeys.find(({ id }) => id === key.id)?.rateLimitRpm ?? 0,
    Number(view.headers["x-ratelimit-limit-requests"]),
  ];
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
