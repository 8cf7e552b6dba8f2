import * as sql from "../../gen/sql/calls.ts";
import { CellDirectory } from "../database/cells/cell-directory.ts";
import { CellRouter } from "../database/cells/cell-router.ts";
import { CitusWorkers } from "../database/cells/citus/workers.ts";
import { type CellToMigrate, migrateCell } from "../database/cells/migrate-cell.ts";
import { WaitingCells } from "../database/cells/waiting-cells.ts";
import type { Cells, FunctionCaller } from "../database/driver/cells.ts";
import type { DatabaseAddress } from "../database/driver/connect.ts";
import { Database, type DatabaseOptions, type Servers } from "../database/driver/database.ts";
import { DatabaseClock, timeOf } from "../database/driver/database-clock.ts";
import { Hosts } from "../database/driver/hosts.ts";
import { createIds, type Ids } from "../domain/ids.ts";
import { currency, setCurrency } from "../domain/money.ts";
import { type Config, poolSizes } from "./settings/config.ts";
import { ConfigError } from "./start-error.ts";

const STATEMENT_TIMEOUT_MS = 5_000;
const MAX_STATEMENTS = 2_048;
const MAX_WAIT_MS = 3_000;

export type DatabaseLogin = { readonly address: DatabaseAddress; readonly role: string };

/**
 * One pool per purpose, so that slow statements delay neither admission, nor billing, nor the heartbeats, nor the
 * end of streams of revoked keys.
 */
export type Databases = {
  /** Undefined with one cell. */
  readonly directory: CellDirectory | undefined;
  readonly waiting: WaitingCells | undefined;
  readonly single: Cells;
  readonly admission: Cells;
  readonly billing: Cells;
  readonly monitor: Cells;
  /** One per cell. */
  readonly clocks: readonly DatabaseClock[];
};

const PURPOSES = { single: "vx", admission: "vx admission", billing: "vx billing", monitor: "vx monitor" };
type Pools = Readonly<Record<keyof typeof PURPOSES, Database>>;

/** Opens the pools of the only database or, if there are any, of the cells. All amounts are in the currency of the settings. */
export function openDatabases(config: Config, { address, role }: DatabaseLogin, cells?: readonly CellToMigrate[]): Databases {
  setCurrency(config.currency);
  if (!cells) {
    const pools = openPools(config, role, new Hosts(address));
    return { directory: undefined, waiting: undefined, clocks: [newClock()], ...pools };
  }
  const used = cells.filter(({ lanes }, i) => i === 0 || lanes.length > 0);
  const pools = used.map((cell) => openPools(config, role, serversOf(cell), cell.schema));
  const directoryCell = (cell: CellToMigrate, { monitor: pool }: Pools) => ({
    name: cell.name,
    pool,
    assumedLanes: cell.lanes,
    prepare: async () => {
      await migrateCell(cell, waiting.known);
      await requireCurrency(pool);
    },
  });
  const directory = new CellDirectory(
    used.map((cell, i) => directoryCell(cell, pools[i] as Pools)),
    (unowned) => waiting.onOwners(unowned),
  );
  const routers = forEachPurpose((purpose) => {
    const ofPurpose = pools.map((ofCell) => ofCell[purpose]);
    return new CellRouter(ofPurpose, directory);
  });
  const clocks = used.map(newClock);
  const waiting = new WaitingCells(cells, used, role, (cell) => {
    const added = openPools(config, role, serversOf(cell), cell.schema);
    for (const purpose of Object.keys(PURPOSES) as (keyof Pools)[]) routers[purpose].append(added[purpose]);
    clocks.push(newClock());
    const index = directory.append({ ...directoryCell(cell, added), assumedLanes: [] });
    directory.exclude(index);
    return index;
  });
  return { directory, waiting, clocks, ...routers };
}

/** Amounts of another currency must not be added to those in the database. */
export async function requireCurrency(database: FunctionCaller): Promise<void> {
  const { code } = currency();
  const kept = await keepCurrency(database, code);
  if (kept === code) return;
  throw new ConfigError(
    `VX_CURRENCY: is ${code}, but the database, or a server that uses it, has amounts in ${kept}; set VX_CURRENCY=${kept}, or use another database`,
  );
}

/** Returns the currency of the database: the given one if there are no amounts yet. */
export async function keepCurrency(database: FunctionCaller, code: string | null): Promise<string> {
  return await sql.keepCurrency(database, { code });
}

function newClock(): DatabaseClock {
  return new DatabaseClock(() => performance.now());
}

/** The ids of objects have the time of the database in which their rows are. */
export function idsOf(databases: Databases): Ids {
  return createIds(
    (cell) => timeOf(databases.clocks, cell),
    (lane) => databases.directory?.cellOf(lane) ?? 0,
    () => databases.directory?.usableLanes ?? [],
  );
}

export function serversOf({ engine, address, schema }: Pick<CellToMigrate, "engine" | "address" | "schema">): Servers {
  return engine === "citus" ? new CitusWorkers(address, schema) : new Hosts(address);
}

function openPools(config: Config, role: string, servers: Servers, schema = "vx"): Pools {
  const sizes = poolSizes(config);
  return forEachPurpose((purpose) => {
    const options: DatabaseOptions = {
      name: PURPOSES[purpose],
      role,
      schema,
      connections: sizes[purpose],
      statementTimeoutMs: STATEMENT_TIMEOUT_MS,
      maxStatements: MAX_STATEMENTS,
      maxWaitMs: MAX_WAIT_MS,
    };
    return new Database(servers, options);
  });
}

function forEachPurpose<Value>(create: (purpose: keyof Pools) => Value): Readonly<Record<keyof Pools, Value>> {
  return { single: create("single"), admission: create("admission"), billing: create("billing"), monitor: create("monitor") };
}

export async function closeDatabases({ single, admission, billing, monitor }: Databases): Promise<void> {
  await Promise.all([single, admission, billing, monitor].map((cells) => cells.close()));
}
