import { randomBytes } from "node:crypto";
import { describe, expect, test } from "vitest";
import { GenerateService } from "../../gen/vx/v1/generate_pb.js";
import { LedgerService } from "../../gen/vx/v1/ledger_pb.js";
import { generateKey } from "../../src/domain/credentials.ts";
import type { Lane } from "../../src/domain/lane.ts";
import { useOwnApp } from "../support/app.ts";
import { createTestKey, useTestKey } from "../support/fixtures.ts";
import { type LimitInit, limitedPayer } from "../support/limited-payer.ts";
import { REQUEST, useMetered } from "../support/metered.ts";
import { withinOneMinute } from "../support/minute.ts";
import { bearer } from "../support/protocols.ts";
import { detail, expectRefusals } from "./refusals.ts";
import { callEach, commonHeaders, quickWires, useClients, wires } from "./wires.ts";

const metered = useMetered();
const clients = useClients(wires, () => metered.app.url);
const { generate, streamGenerate } = GenerateService.method;
const { listEntries } = LedgerService.method;

test("requests per minute: the window is in every answer, and the wait in the refusal", async () => {
  const rpm = wires.length;
  await withinOneMinute(async () => {
    const { accountId } = await metered.payer(0n);
    const { secret } = await createTestKey(metered.operator, { accountId, rateLimitRpm: rpm });
    const seconds = () => 60 - Math.floor((Date.now() / 1_000) % 60);
    const windowOf = (remaining: number, left: number) => ({
      "ratelimit-policy": `"rpm";q=${rpm};w=60`,
      ratelimit: `"rpm";r=${remaining};t=${left}`,
      "x-ratelimit-limit-requests": String(rpm),
      "x-ratelimit-remaining-requests": String(remaining),
      "x-ratelimit-reset-requests": `${left}s`,
    });
    const callOf = () => ({ method: listEntries, headers: { ...bearer(secret), "x-request-id": "one" } });
    const taken = Object.values(await callEach(clients, callOf));
    for (const [i, answer] of taken.entries()) {
      expect(answer.error).toBeUndefined();
      const left = Number(/t=(\d+)$/.exec(answer.headers.ratelimit ?? "")?.[1]);
      expect(commonHeaders(answer)).toMatchObject(windowOf(rpm - 1 - i, left));
      expect(answer.headers).not.toHaveProperty("retry-after");
      expect(left).toBeGreaterThanOrEqual(seconds());
    }
    for (const wire of wires) {
      const answers = await callEach(clients, callOf, [wire]);
      const left = Number(answers[wire.name]?.headers["retry-after"]);
      expect(left).toBeGreaterThanOrEqual(seconds());
      expect(left).toBeLessThanOrEqual(60);
      expect(answers[wire.name]?.headers).toMatchObject(windowOf(0, left));
      const description = expect.stringMatching(/per minute/);
      expectRefusals([wire], answers, {
        code: "RESOURCE_EXHAUSTED",
        reason: "rate_limit_exceeded",
        text: /per minute/,
        metadata: { rate_limit_rpm: String(rpm) },
        headers: { "retry-after": String(left), "x-should-retry": "true" },
        details: [
          detail("RetryInfo", { retry_delay: `${left}s` }),
          detail("QuotaFailure", { violations: [expect.objectContaining({ subject: "requests per minute", description })] }),
        ],
      });
    }
  });
});
test.each<[string, string, LimitInit, RegExp]>([
  ["budget_exceeded", "FAILED_PRECONDITION", { metric: "cost", window: "month", amount: 5n }, /\$0\.000029/],
  ["token_limit_exceeded", "RESOURCE_EXHAUSTED", { metric: "tokens", window: "month", amount: 5n }, /19/],
  ["generation_limit_exceeded", "RESOURCE_EXHAUSTED", { metric: "generations", window: "day", amount: 0n }, /1/],
  ["concurrency_limit_reached", "RESOURCE_EXHAUSTED", { metric: "concurrent", amount: 0n }, /running/],
])("%s: the refusal has the limit", async (reason, code, limit, needed) => {
  const { accountId, secret } = await limitedPayer(metered, [limit]);
  const [limitId] = await metered.app.database.owner<{ id: string }[]>`
    SELECT id FROM vx.limits WHERE owner_id = ${accountId}`;
  const { metric, window = "", amount } = limit;
  const over = reason === "budget_exceeded" ? wires : quickWires;
  for (const method of [generate, streamGenerate]) {
    const answers = await callEach(clients, () => ({ method, request: REQUEST, headers: bearer(secret) }), over);
    const subject = `limit:${limitId?.id}`;
    const violation = expect.objectContaining({ subject, description: expect.stringMatching(needed) });
    expectRefusals(over, answers, {
      code,
      reason,
      text: needed,
      metadata: expect.objectContaining({ limit_id: limitId?.id, metric, window, amount: String(amount) }),
      headers: { "x-should-retry": "false" },
      details: [detail("QuotaFailure", { violations: [violation] })],
    });
  }
});

describe("a server with low limits", () => {
  const app = useOwnApp({ env: { VX_MAX_BODY_BYTES: "4096", VX_AUTH_FAILURES_PER_MINUTE: "3" } });
  const key = useTestKey(app);
  const low = useClients(wires, () => app.url);

  test("a request that is too large, also after decompression, is refused", async () => {
    const request = { model: "x", messages: [{ role: "user", content: "x".repeat(4_096) }] };
    const answers = await callEach(low, () => ({ method: generate, request, headers: bearer(key.secret) }));
    expectRefusals(wires, answers, {
      code: "RESOURCE_EXHAUSTED",
      reason: "request_too_large",
      text: /^The request body can have at most 4(096|101) bytes/,
    });
  });

  test("too many unknown keys of one address are refused with the wait", async () => {
    await withinOneMinute(async () => {
      const callOf = () => ({ method: listEntries, headers: bearer(generateKey(0 as Lane, randomBytes).secret) });
      for (let i = 0; i < 3; i++) await callEach(low, callOf, wires.slice(0, 1));
      for (const wire of wires) {
        const answers = await callEach(low, callOf, [wire]);
        const left = Number(answers[wire.name]?.headers["retry-after"]);
        expect(left).toBeGreaterThanOrEqual(1);
        expect(left).toBeLessThanOrEqual(60);
        expectRefusals([wire], answers, {
          code: "RESOURCE_EXHAUSTED",
          reason: "too_many_failed_authentications",
          text: /Too many calls/,
          headers: { "retry-after": String(left), "x-should-retry": "true" },
          details: [detail("RetryInfo", { retry_delay: `${left}s` })],
        });
      }
    });
  });
});
