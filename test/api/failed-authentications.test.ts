import { randomBytes } from "node:crypto";
import { describe, expect, test } from "vitest";
import { MeService } from "../../gen/vx/v1/me_pb.js";
import { drawKey } from "../../src/domain/api-key.ts";
import { startTestApp, type TestApp } from "../support/app.ts";
import { createTestKey, operatorOf } from "../support/fixtures.ts";
import { withinOneMinute } from "../support/minute.ts";
import { bearer, protocols } from "../support/protocols.ts";

const getMe = MeService.method.getMe;

describe.each(protocols)("$name", ({ open }) => {
  test("after as many unknown keys as are allowed in a minute, the next call gets 429", async () => {
    await withServer(async (app) => {
      const caller = open(app.url);
      const outcomes = [];
      for (let i = 0; i < 5; i++) outcomes.push(await caller.call(getMe, {}, bearer(unknown())));
      caller.close();
      expect(outcomes.map((outcome) => outcome.ok || outcome.reason)).toEqual([
        "invalid_api_key",
        "invalid_api_key",
        "invalid_api_key",
        "too_many_failed_authentications",
        "too_many_failed_authentications",
      ]);
      const [last] = outcomes.slice(-1);
      expect(last).toMatchObject({ code: "resource_exhausted", details: ["ErrorInfo", "RetryInfo"] });
      const seconds = Number(last?.headers["retry-after"]);
      expect(seconds).toBeGreaterThanOrEqual(1);
      expect(seconds).toBeLessThanOrEqual(60);
    });
  });
});

test("neither mistyped keys nor good ones are counted", async () => {
  await withServer(async (app) => {
    const key = await createTestKey(operatorOf(app));
    const caller = protocols[0]?.open(app.url);
    for (let i = 0; i < 5; i++) {
      await caller?.call(getMe, {}, bearer(`${key.secret.slice(0, -1)}!`));
      await caller?.call(getMe, {}, bearer(key.secret));
    }
    expect(await caller?.call(getMe, {}, bearer(key.secret))).toMatchObject({ ok: true });
    caller?.close();
  });
});

function unknown(): string {
  return drawKey(3, randomBytes).secret;
}

/** Each attempt gets a server of its own: what one counted would show in the next. */
async function withServer(attempt: (app: TestApp) => Promise<void>): Promise<void> {
  await withinOneMinute(async () => {
    const app = await startTestApp({ env: { VX_AUTH_FAILURES_PER_MINUTE: "3" } });
    try {
      await attempt(app);
    } finally {
      await app.stop();
    }
  });
}
