import type { Cells } from "../store/driver/cells.ts";
import type { DatabaseAddress } from "../store/driver/connect.ts";
import { Database, type DatabaseOptions } from "../store/driver/database.ts";
import { Hosts } from "../store/driver/hosts.ts";
import type { Config } from "./config.ts";
import { poolSizes } from "./connection-limit.ts";

const STATEMENT_TIMEOUT_MS = 5_000;
const MAX_STATEMENTS = 2_048;
const MAX_WAIT_MS = 3_000;

/** The address of the database, and the role to use there. */
export type DatabaseLogin = { readonly address: DatabaseAddress; readonly role: string };

/**
 * One pool per purpose, so that slow statements delay neither admission, nor billing, nor the heartbeats, nor the
 * end of streams of revoked keys.
 */
export type Databases = {
  readonly single: Cells;
  readonly admission: Cells;
  readonly billing: Cells;
  readonly monitor: Cells;
};

export function openDatabases(config: Config, { address, role }: DatabaseLogin): Databases {
  const sizes = poolSizes(config);
  const hosts = new Hosts(address);
  const open = (name: string, connections: number) => {
    const options: DatabaseOptions = {
      name,
      role,
      connections,
      statementTimeoutMs: STATEMENT_TIMEOUT_MS,
      maxStatements: MAX_STATEMENTS,
      maxWaitMs: MAX_WAIT_MS,
    };
    return new Database(hosts, options);
  };
  return {
    single: open("vx", sizes.single),
    admission: open("vx admission", sizes.admission),
    billing: open("vx billing", sizes.billing),
    monitor: open("vx monitor", sizes.monitor),
  };
}

export async function closeDatabases(databases: Databases): Promise<void> {
  await Promise.all(Object.values(databases).map((database: Cells) => database.close()));
}
