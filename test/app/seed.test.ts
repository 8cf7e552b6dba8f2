import { randomBytes } from "node:crypto";
import { afterEach, beforeEach, expect, test } from "vitest";
import { seedDemo } from "../../src/app/seed-demo.ts";
import { Database } from "../../src/database/driver/database.ts";
import { generateKey } from "../../src/domain/credentials.ts";
import type { Ids } from "../../src/domain/ids.ts";
import { LANE_COUNT, type Lane } from "../../src/domain/lane.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { typeIds } from "../support/type-ids.ts";

let shared: TestDatabase;
let database: Database;

beforeEach(async () => {
  shared = await createTestDatabase();
  database = new Database(shared.address, {
    connections: 4,
    statementTimeoutMs: 5_000,
    maxStatements: 10,
    maxWaitMs: 5_000,
    name: "seed",
  });
});
afterEach(async () => {
  await database.close();
  await shared.drop();
});

function seed(ids: Ids = typeIds): Promise<string | undefined> {
  const generate = (lane: Lane) => generateKey(lane, randomBytes);
  return seedDemo({ database, ids, generateKey: generate }, false);
}

async function counts() {
  const [row] = await shared.owner`
    SELECT (SELECT count(*)::int FROM vx.accounts) AS accounts, (SELECT count(*)::int FROM vx.ledger) AS entries,
           (SELECT count(*)::int FROM vx.keys) AS keys`;
  return row;
}

test("if the key cannot be created, the account is not created either; the next start creates both", async () => {
  const wrongLane = { ...typeIds, key: (lane: Lane) => typeIds.key((lane + 1) % LANE_COUNT) };
  await expect(seed(wrongLane)).rejects.toThrow();
  expect(await counts()).toEqual({ accounts: 0, entries: 0, keys: 0 });
  expect(await seed()).toMatch(/^vx_live_/);
  expect(await counts()).toEqual({ accounts: 1, entries: 1, keys: 1 });
});

test("one of several servers that start concurrently creates the demo account", async () => {
  const secrets = await Promise.all(Array.from({ length: 4 }, () => seed()));
  expect(secrets.filter((secret) => secret !== undefined)).toHaveLength(1);
  expect(await counts()).toEqual({ accounts: 1, entries: 1, keys: 1 });
});
