import { beforeAll, expect, test } from "vitest";
import { MeService } from "../../../gen/vx/v1/me_pb.js";
import { useTestApp } from "../../support/app.ts";
import { createTestKey, useOperator, useTestKey } from "../../support/fixtures.ts";
import { callOf } from "../../support/protocols.ts";

const app = useTestApp();
const operator = useOperator(app);
const call = callOf(app);
const key = useTestKey(app, { plan: "pro" });
beforeAll(async () => {
  await operator.creditAccount({ accountId: key.accountId, amountMicros: 9_999_986n, reason: "test", idempotencyKey: "1" });
});

test("GetMe returns the masked key, its name, plan, limit and the exact balance", async () => {
  const outcome = await call(MeService.method.getMe, {}, key.secret);
  expect(outcome).toMatchObject({
    ok: true,
    message: {
      key: `${key.secret.slice(0, 12)}…${key.secret.slice(-4)}`,
      keyName: "test",
      plan: "pro",
      rateLimitRpm: 600,
      balance: "$9.999986",
      balanceMicros: 9_999_986n,
    },
  });
});

test("GetMe does not count against the rate limit", async () => {
  const limited = await createTestKey(operator, { rateLimitRpm: 1 });
  for (let i = 0; i < 5; i++) {
    const outcome = await call(MeService.method.getMe, {}, limited.secret);
    expect(outcome.ok).toBe(true);
    expect(outcome.headers.ratelimit).toBeUndefined();
  }
});
