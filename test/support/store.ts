import { afterAll, beforeAll } from "vitest";
import { Billing } from "../../src/store/billing.ts";
import type { Cells, FunctionCaller } from "../../src/store/driver/cells.ts";
import { Database } from "../../src/store/driver/database.ts";
import { DatabaseClock } from "../../src/store/driver/database-clock.ts";
import { createTestDatabase, type TestDatabase } from "./database.ts";

/** The connections of a server to a separate database, and a login as its owner. */
type TestStore = { readonly database: Database; readonly owner: TestDatabase["owner"] };

/** Creates a store for the tests of a file. */
export function useStore({ connections = 2 } = {}): TestStore {
  let testDatabase: TestDatabase;
  let database: Database;
  beforeAll(async () => {
    testDatabase = await createTestDatabase();
    database = new Database(testDatabase.address, {
      connections,
      statementTimeoutMs: 5_000,
      name: "test",
      maxStatements: 1_000,
      maxWaitMs: 5_000,
    });
  });
  afterAll(async () => {
    await database.close();
    await testDatabase.drop();
  });
  return {
    get database() {
      return database;
    },
    get owner() {
      return testDatabase.owner;
    },
  };
}

/** The same database, whose functions are called in another way. */
export function withCall(database: Database, call: FunctionCaller["call"]): Cells {
  const cell: Database = Object.create(database);
  return Object.assign(cell, { call, all: [cell] });
}

export const clock = new DatabaseClock(() => performance.now());

/** The billing of one server. */
export function createTestBilling(
  database: Database,
  { serverId = "one", pipelines = 1, maxWaiting = 100 } = {},
): Billing {
  return new Billing(database, { serverId, pipelines, maxWaiting, clocks: [clock] });
}
