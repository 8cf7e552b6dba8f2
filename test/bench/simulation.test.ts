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
  const scenario = { servers: 1, cells: 1, postgresCores: 8, pipelines: 8, callsPerSecond: 100, seconds: 2, costs: COSTS };
  return simulate({ ...scenario, random: () => random.next(), ...changes });
}

test("a call alone takes its three statements, their round trips and two commits", () => {
  const { p50Ms, batch, maxInFlight } = run({ callsPerSecond: 1, seconds: 100 });
  const statementMs = 0.76 + 0.5 + 0.76;
  expect(p50Ms).toBeCloseTo(0.18 + 3 * statementMs + 0.108 + 2 * 1, 2);
  expect([batch, maxInFlight]).toEqual([1, 1]);
});

test("batches grow with the load of a server, and shrink if servers or cells divide it", () => {
  const batchOf = (changes: Partial<Scenario>) => run({ callsPerSecond: 800, ...changes }).batch;
  const batch = batchOf({});
  for (const smaller of [{ servers: 4 }, { cells: 4 }, { callsPerSecond: 200 }]) expect(batchOf(smaller)).toBeLessThan(batch);
});

test("to a distant database, batches follow each other: a call waits little longer than its three round trips", () => {
  const far = { callsPerSecond: 500, costs: { ...COSTS, roundTripMs: 20 } };
  const { p50Ms, maxInFlight } = run(far);
  expect(maxInFlight).toBeGreaterThan(3);
  expect(p50Ms).toBeLessThan(3.75 * 20);
  expect(run({ ...far, pipelines: 1 }).p50Ms).toBeGreaterThan(1.2 * p50Ms);
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
