import { expect, test } from "vitest";
import { type Scenario, simulate } from "../../tools/simulate/simulation.ts";
import { Random } from "../fuzz/random.ts";

const COSTS = {
  serverPerCall: 180,
  serverPerStatement: 760,
  postgresPerCall: 108,
  postgresPerStatement: 760,
  roundTripMs: 0.5,
  commitMs: 1,
};

function run(changes: Partial<Scenario>) {
  const random = new Random(1);
  const scenario = { servers: 1, cells: 1, postgresCores: 8, callsPerSecond: 100, seconds: 2, costs: COSTS };
  return simulate({ ...scenario, random: () => random.next(), ...changes });
}

test("a call alone takes its three statements, their round trips, and two commits", () => {
  const { p50Ms, admissionBatch, billingBatch } = run({ callsPerSecond: 1, seconds: 100 });
  const statementMs = 0.76 + 0.5 + 0.76 + 0.108 / 3;
  expect(p50Ms).toBeCloseTo(0.18 + 3 * statementMs + 2 * 1, 2);
  expect(admissionBatch).toBeCloseTo(1, 1);
  expect(billingBatch).toBeCloseTo(1, 1);
});

test("batches grow with the load of a server, and shrink if servers or cells divide it", () => {
  const sizesOf = (changes: Partial<Scenario>) => {
    const { admissionBatch, billingBatch } = run({ callsPerSecond: 800, ...changes });
    return [admissionBatch, billingBatch] as const;
  };
  const sizes = sizesOf({});
  for (const smaller of [sizesOf({ servers: 4 }), sizesOf({ cells: 4 }), sizesOf({ callsPerSecond: 200 })])
    for (const [i, size] of smaller.entries()) expect(size).toBeLessThan(sizes[i] as number);
});

test("the cores of PostgreSQL limit the calls of many servers, and more cells raise the limit", () => {
  const load = { servers: 16, postgresCores: 2, callsPerSecond: 8_000 };
  const one = run(load);
  expect(one.postgresUse).toBeGreaterThan(0.95);
  expect(one.completedPerSecond).toBeLessThan(0.95 * load.callsPerSecond);
  const four = run({ ...load, cells: 4 });
  expect(four.completedPerSecond).toBeGreaterThan(0.95 * load.callsPerSecond);
  expect(four.serverUse).toBeGreaterThan(one.serverUse);
});
