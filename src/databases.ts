import type { Config } from "./config.ts";
import type { DatabaseAddress } from "./store/connect.ts";
import { Database, type DatabaseOptions } from "./store/database.ts";

const STATEMENT_TIMEOUT_MS = 5_000;
const MAX_STATEMENTS = 2_048;
const MAX_WAIT_MS = 3_000;

/** Where the database is, and the role to act as there. */
export type DatabaseLogin = { readonly address: DatabaseAddress; readonly role: string };

/** Connections by what they are for: nothing slow can stand before admission, money, or the look whether all is well. */
export type Databases = {
  readonly single: Database;
  readonly admission: Database;
  readonly billing: Database;
  readonly monitor: Database;
};

export function openDatabases(config: Config, { address, role }: DatabaseLogin): Databases {
  const open = (name: string, connections: number) => {
    const options: DatabaseOptions = {
      name,
      role,
      connections,
      statementTimeoutMs: STATEMENT_TIMEOUT_MS,
      maxStatements: MAX_STATEMENTS,
      maxWaitMs: MAX_WAIT_MS,
    };
    return new Database(address, options);
  };
  return {
    single: open("vx", config.databaseConnections),
    admission: open("vx admission", config.admissionPipelines),
    billing: open("vx billing", config.billingPipelines),
    monitor: open("vx monitor", 1),
  };
}

export async function closeDatabases(databases: Databases): Promise<void> {
  await Promise.all(Object.values(databases).map((database: Database) => database.close()));
}
