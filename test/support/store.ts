import { type AuditFinding, audit } from "../../src/audit/store.ts";
import type { Cells, FunctionCaller } from "../../src/database/driver/cells.ts";
import { Database, type DatabaseOptions } from "../../src/database/driver/database.ts";
import { DatabaseClock } from "../../src/database/driver/database-clock.ts";
import { laneOfId } from "../../src/domain/lane.ts";
import { Billing } from "../../src/generations/billing.ts";
import { createTestDatabase, type TestDatabase } from "./database.ts";
import { started } from "./started.ts";

/** The connections of a server to a separate database, and a login as its owner. */
export type TestStore = { readonly database: Database; readonly owner: TestDatabase["owner"] };

let shared: Promise<TestStore> | undefined;

/** The store that the files of a worker share: tests create accounts, and names of what a whole database has, of their own. */
export function useStore(): TestStore {
  return started(async () => {
    shared ??= createTestStore({ connections: 8 });
    const { database, owner } = await shared;
    return { database, owner };
  });
}

/** A store while the tests run: for tests that need an empty database, or change more than their own accounts. */
export function useOwnStore(options?: { readonly connections: number }): TestStore {
  return started(() => createTestStore(options));
}

async function createTestStore({ connections = 2 } = {}) {
  const { address, owner, drop } = await createTestDatabase();
  const database = openDatabase(address, { connections });
  const close = async () => {
    await database.close();
    await drop();
  };
  return { database, owner, close };
}

/** The connections of a server. */
export function openDatabase(
  address: ConstructorParameters<typeof Database>[0],
  options: Partial<DatabaseOptions> = {},
): Database {
  const limits = { connections: 2, statementTimeoutMs: 5_000, maxStatements: 1_000, maxWaitMs: 5_000 };
  return new Database(address, { ...limits, name: "test", ...options });
}

/** The same database, whose functions are called in another way. */
export function withCall(database: Database, call: FunctionCaller["call"]): Cells {
  const cell: Database = Object.create(database);
  return Object.assign(cell, { call, all: [cell] });
}

/** What an audit finds in an account. Of the lanes, only that of the account is read. */
export async function findingsOf(database: Database, accountId: string): Promise<AuditFinding[]> {
  const cell = withCall(database, (...call) => database.call(...call));
  const ofLane = Object.assign(cell, { owns: (_cell: number, lane: number) => lane === laneOfId(accountId) });
  const { findings } = await audit(ofLane, new AbortController().signal);
  return findings.filter(({ account_id }) => account_id === accountId);
}

export const clock = new DatabaseClock(() => performance.now());

/** The billing of one server. */
export function createTestBilling(database: Database, { serverId = "one", pipelines = 1, maxWaiting = 100 } = {}): Billing {
  return new Billing(database, { serverId, pipelines, maxWaiting, clocks: [clock] });
}
