import { afterAll, beforeAll, expect, test } from "vitest";
import { typeIds } from "../../src/domain/ids.ts";
import { Settler } from "../../src/metering/settler.ts";
import { Billing } from "../../src/store/billing.ts";
import { Database } from "../../src/store/database.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { createPayer, endOf, holdOf, moneyProblems } from "../support/payer.ts";

let testDatabase: TestDatabase;
let database: Database;
let billing: Billing;

beforeAll(async () => {
  testDatabase = await createTestDatabase();
  database = new Database(testDatabase.address, {
    connections: 2,
    statementTimeoutMs: 5_000,
    name: "test",
    maxStatements: 1_000,
    maxWaitMs: 5_000,
  });
  billing = new Billing(database, { serverId: "one", pipelines: 1, maxWaiting: 100 });
});
afterAll(async () => {
  expect(await moneyProblems(testDatabase)).toEqual([]);
  await database.close();
  await testDatabase.drop();
});

/** The settler's waits take no time but what is done in them. */
function settlerWith(during: (ms: number) => Promise<unknown>) {
  let nowMs = 0;
  const failures: string[] = [];
  const settler = new Settler({
    billing,
    now: () => nowMs,
    wait: async (ms) => {
      nowMs += ms;
      await during(ms);
    },
    onFailure: ({ holdId }) => failures.push(holdId),
  });
  return { settler, failures };
}

test("a hold that is placed after it was given up does not stay", async () => {
  const payer = await createPayer(database, 100n);
  const hold = holdOf(payer, 60n, typeIds.generation());
  const { settler, failures } = settlerWith(async () => {
    expect(await billing.hold(hold)).toEqual({ outcome: "held" });
  });
  await settler.abandon(hold);
  expect(await billing.end(endOf(payer, hold.holdId, 10n))).toEqual({ outcome: "gone" });
  expect(failures).toEqual([]);
});

test("a settlement that the database cannot take is tried for a minute, then told", async () => {
  const payer = await createPayer(database, 100n);
  const id = typeIds.generation();
  const nobody = new Database(
    { kind: "socket", folder: "/nonexistent", user: "x", database: "x" },
    { connections: 1, statementTimeoutMs: 1_000, name: "test", maxStatements: 10, maxWaitMs: 1_000 },
  );
  const away = new Billing(nobody, { serverId: "one", pipelines: 1, maxWaiting: 10 });
  let nowMs = 0;
  const failures: string[] = [];
  const settler = new Settler({
    billing: away,
    now: () => nowMs,
    // Eight times as fast: each try takes its time to find nobody.
    wait: async (ms) => {
      nowMs += 8 * ms;
    },
    onFailure: ({ holdId }) => failures.push(holdId),
  });
  await expect(settler.end(endOf(payer, id, 10n))).rejects.toMatchObject({ reason: "unavailable" });
  expect(nowMs).toBeGreaterThan(40_000);
  expect(nowMs).toBeLessThan(60_000 + 16_000);
  expect(failures).toEqual([id]);
  await nobody.close();
});
