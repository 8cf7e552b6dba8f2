import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { KeyService } from "../../../gen/vx/v1/key_pb.js";
import { startTestApp, type TestApp } from "../../support/app.ts";
import { createTestKey, type Operator, operatorOf } from "../../support/fixtures.ts";
import { bearer, protocols } from "../../support/protocols.ts";

let app: TestApp;
let operator: Operator;

beforeAll(async () => {
  app = await startTestApp();
  operator = operatorOf(app);
});
afterAll(() => app.stop());

describe.each(protocols)("$name", ({ open }) => {
  test.each([
    { has: ["keys"], asks: ["read"], lacks: "read" },
    { has: ["keys"], asks: ["keys", "generate"], lacks: "generate" },
    { has: ["keys", "read"], asks: ["keys", "read", "generate"], lacks: "generate" },
    { has: ["keys"], asks: [], lacks: "generate,read" },
    { has: ["keys", "generate"], asks: [], lacks: "read" },
  ])("a key with $has cannot pass on $asks", async ({ has, asks, lacks }) => {
    const calling = await createTestKey(operator, { scopes: has });
    const caller = open(app.url);
    const outcome = await caller.call(
      KeyService.method.createKey,
      { name: "ci", scopes: asks },
      bearer(calling.secret),
    );
    caller.close();
    expect(outcome).toMatchObject({
      code: "permission_denied",
      reason: "insufficient_scope",
      metadata: { scope: lacks },
    });
    const { apiKeys } = await operator.listKeys({ accountId: calling.accountId });
    expect(apiKeys).toHaveLength(1);
  });
});
