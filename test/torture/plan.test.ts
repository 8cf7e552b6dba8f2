import { expect, test } from "vitest";
import { Random } from "../fuzz/random.ts";
import { planCalls } from "./plan.ts";

function plan(seed: number) {
  return planCalls({ random: new Random(seed), episode: 1, seconds: 6, perSecond: 100, servers: 2 });
}

test("the same seed gives the same plan, another seed another one", () => {
  expect(plan(7)).toEqual(plan(7));
  expect(plan(7)).not.toEqual(plan(8));
});

test("a plan has every kind of call, sorted by time, each with a unique request id", () => {
  const calls = plan(7);
  expect(new Set(calls.map(({ kind }) => kind)).size).toBe(16);
  expect(new Set(calls.map(({ race }) => race))).toEqual(new Set([undefined, "funds", "rate", "cap", "revocation", "limits"]));
  expect(calls.filter(({ leavesAfterMs }) => leavesAfterMs !== undefined).length).toBeGreaterThan(10);
  expect(calls.filter(({ deadlineMs }) => deadlineMs !== undefined).length).toBeGreaterThan(10);
  expect(calls.map(({ atMs }) => atMs)).toEqual(calls.map(({ atMs }) => atMs).sort((a, b) => a - b));
  expect(new Set(calls.map(({ requestId }) => requestId)).size).toBe(calls.length);
});

test("calls with the same idempotency key have the same request, except refunds", () => {
  const asked = new Map<string, string>();
  for (const { kind, idempotencyKey, key, reply, maxTokens, op } of plan(7)) {
    if (idempotencyKey === undefined || kind === "refund_entry") continue;
    const payload = JSON.stringify([kind, key, reply, maxTokens, op]);
    expect(asked.get(idempotencyKey) ?? payload).toBe(payload);
    asked.set(idempotencyKey, payload);
  }
  expect(asked.size).toBeGreaterThan(20);
});

test("refunds ask for more than a charge in parts, at both servers at once, and use keys again", () => {
  const refunds = plan(7).filter(({ kind }) => kind === "refund_entry");
  const groups = [...Map.groupBy(refunds, ({ op }) => op).values()];
  const sums = groups.map((parts) => parts.reduce((sum, { micros = 0 }) => sum + micros, 0));
  expect(Math.max(...sums)).toBeGreaterThan(10_000);
  const areAtOnce = ([first, second]: typeof refunds) =>
    second !== undefined && first?.atMs === second.atMs && first.server !== second.server;
  expect(groups.some(areAtOnce)).toBe(true);
  const keys = Map.groupBy(refunds, ({ idempotencyKey }) => idempotencyKey);
  expect([...keys.values()].some((calls) => new Set(calls.map(({ op }) => op)).size > 1)).toBe(true);
  expect([...keys.values()].some((calls) => new Set(calls.map(({ micros }) => micros)).size > 1)).toBe(true);
});
