import type { Lane } from "../../domain/lane.ts";
import { monthText } from "../../domain/periods.ts";
import { connect, type DatabaseAddress, type Sql, TransactionPoolingError } from "../driver/connect.ts";
import { compareReleases, MigrationError, RELEASE } from "./release.ts";
import { applyFunctions, changedNames, readChecksums, readFiles, readFunctions, type SqlFile } from "./sql-files.ts";
import { isLockTimeout, LocksNotAvailable, lockTables, withShortWaits } from "./table-locks.ts";

const DEFAULT_SCHEMA = "vx";

const TABLES = new URL("./tables/", import.meta.url);
/** Ends the names of files with work that a migration needs, for a database that is in use. The work can be repeated. */
const ONLINE = ".online";
/** An arbitrary number that is the same in every release. */
const LOCK = 7_665_120;
const OLDEST_POSTGRESQL = 150_000;
const MIGRATION_TIMEOUT_MS = 10 * 60_000;
/** About ten minutes: an attempt and the pause after it take less than two seconds. */
const LOCK_ATTEMPTS = 300;

const MOVE_ATTEMPTS = 5;

/** How a cluster of servers stores a schema: what its tables and functions need besides those of one PostgreSQL. */
export type Distribution = {
  /** Throws MigrationError unless the database is one of such a cluster. */
  require(sql: Sql): Promise<void>;
  /** Prepares a session that changes the schema. */
  prepareSession(sql: Sql): Promise<void>;
  /** Moves the tables of a new schema to their server. */
  distribute(transaction: Sql, schema: string): Promise<void>;
  functionsFrom(plain: readonly SqlFile[]): readonly SqlFile[];
  /** Fills in names that this database has given. In a restored cluster, they are others. */
  withNames(sql: Sql, schema: string, functions: readonly SqlFile[]): Promise<readonly SqlFile[]>;
  /** Called after the functions were created. */
  adapt(transaction: Sql, schema: string): Promise<void>;
};

/** The cell to create, or the only database. */
export type MigrationTarget = {
  readonly schema?: string;
  /** Undefined for one PostgreSQL. */
  readonly distribution?: Distribution | undefined;
  /** The lanes that a new cell owns; all of them if undefined. */
  readonly lanes?: readonly Lane[];
};
type State = { readonly version: number; readonly release: string; readonly oldest_release: string };

/** The numbered files, and how many functions, that were applied or would be. */
export type AppliedFiles = { readonly tables: readonly string[]; readonly functions: number };
const NO_FILES: AppliedFiles = { tables: [], functions: 0 };
export type SchemaChanges = AppliedFiles & { readonly moves: readonly Move[] };
const NO_CHANGES: SchemaChanges = { ...NO_FILES, moves: [] };

/** Entries of the ledger that were in no partition of a month, and the partition that is created for them. */
export type Move = { readonly partition: string; readonly entries: bigint };

/** The numbered files in their order, the number of functions that differ from those of this release, and missing partitions. */
export type SchemaStatus = {
  readonly tables: readonly { readonly name: string; readonly appliedAt: Date | undefined }[];
  readonly functions: number;
  readonly moves: readonly Move[];
};

/** A connection to the database, and the files of this release. */
type OpenSchema = {
  readonly sql: Sql;
  readonly schema: string;
  readonly distribution: Distribution | undefined;
  readonly tables: readonly SqlFile[];
  /** Each runs before the numbered file of the same name. */
  readonly online: readonly SqlFile[];
  readonly functions: readonly SqlFile[];
  /** Undefined in an empty database. */
  readonly state: State | undefined;
  /** An older server can run with a newer schema and does not change it. */
  readonly isNewer: boolean;
};

/**
 * Migrates the schema to the version of this code. Each numbered file changes tables and is applied once;
 * a function is applied again when its text or its comment changes. Several servers can start at once.
 */
export async function migrate(address: DatabaseAddress, target: MigrationTarget = {}): Promise<SchemaChanges> {
  return await withSchema(address, target, async (at) => {
    const { sql, schema, tables, state } = at;
    if (at.isNewer) return NO_CHANGES;
    if (state?.version === tables.length && !(await mayReadMigrations(sql, schema))) return NO_CHANGES;
    if (state && isEmpty(await pendingFiles(at))) {
      // A copy of a database has the schema, but not the members of the role.
      await joinRole(sql);
      return { ...NO_CHANGES, moves: await createPartitions(sql, schema) };
    }
    return await apply(at, target.lanes);
  });
}

/** The applied migrations and those that `migrate` would apply. Changes nothing. */
export async function readSchemaStatus(address: DatabaseAddress, target: MigrationTarget = {}): Promise<SchemaStatus> {
  return await withSchema(address, target, async (at) => {
    const { sql, schema, tables, state } = at;
    if (!state) {
      return {
        tables: tables.map(({ name }) => ({ name, appliedAt: undefined })),
        functions: at.functions.length,
        moves: [],
      };
    }
    if (!(await mayReadMigrations(sql, schema))) {
      throw new MigrationError(
        "this login may not read which migrations were applied; use the login of the owner of the database",
      );
    }
    const applied = await sql.unsafe<{ name: string; appliedAt: Date }[]>(
      `SELECT name, applied_at AS "appliedAt" FROM ${schema}.migrations ORDER BY name`,
    );
    const pending = at.isNewer ? NO_FILES : await pendingFiles(at);
    const missing = pending.tables.map((name) => ({ name, appliedAt: undefined }));
    const months = await sql.unsafe<{ month: number; entries: bigint }[]>(`SELECT * FROM ${schema}.months_without_partition()`);
    const moves = months.map(({ month, entries }) => ({ partition: partitionOf(month), entries }));
    return { tables: [...applied, ...missing], functions: pending.functions, moves };
  });
}

/** What `migrate` would apply. A login that may not read which functions were applied sees only the numbered files. */
export async function readPending(address: DatabaseAddress, target: MigrationTarget = {}): Promise<AppliedFiles> {
  return await withSchema(address, target, async (at) => {
    const { sql, schema, tables, functions, state } = at;
    if (at.isNewer) return NO_FILES;
    if (state && (await mayReadMigrations(sql, schema))) return await pendingFiles(at);
    const names = tables.slice(state?.version ?? 0).map(({ name }) => name);
    return { tables: names, functions: state ? 0 : functions.length };
  });
}

async function withSchema<Result>(
  address: DatabaseAddress,
  { schema = DEFAULT_SCHEMA, distribution }: MigrationTarget,
  use: (at: OpenSchema) => Promise<Result>,
): Promise<Result> {
  let sql: Sql | undefined;
  try {
    sql = await connect(address, { statementTimeoutMs: MIGRATION_TIMEOUT_MS, name: "vx migrate" });
    await requirePostgres(sql);
    if (distribution) await distribution.require(sql);
    else await requireUndistributed(sql, schema);
    const [files, plain] = [readFiles(TABLES), readFunctions()];
    const tables = files.filter(({ name }) => !name.endsWith(ONLINE));
    const online = files.filter(({ name }) => name.endsWith(ONLINE));
    const functions = distribution?.functionsFrom(plain) ?? plain;
    const state = await readState(sql, schema);
    const isNewer = state !== undefined && isOlder(RELEASE, state.release);
    if (isNewer) requireCompatible(state);
    else if (state && state.version > tables.length) {
      throw new MigrationError(
        `the database is newer than this code: its schema has version ${state.version}, this release supports ${tables.length}`,
      );
    }
    return await use({ sql, schema, distribution, tables, online, functions, state, isNewer });
  } catch (error) {
    throw explain(error);
  } finally {
    await sql?.end({ timeout: 5 });
  }
}

async function functionsFor({ schema, distribution, functions }: OpenSchema, sql: Sql): Promise<readonly SqlFile[]> {
  return (await distribution?.withNames(sql, schema, functions)) ?? functions;
}

async function apply(at: OpenSchema, lanes: readonly Lane[] | undefined): Promise<SchemaChanges> {
  const { sql, schema, distribution, tables } = at;
  await sql`SELECT pg_advisory_lock(${LOCK})`;
  await distribution?.prepareSession(sql);
  await prepare(sql, schema);
  const applied = await readChecksums(sql, schema, "migrations");
  verify(applied, tables);
  const pending = tables.slice(applied.size);
  if (applied.size > 0) await prepareOnline(at, pending);
  let functions = 0;
  // One transaction, so that a server never sees a partial change.
  await inSchema(sql, schema, async (transaction) => {
    if (applied.size > 0 && pending.length > 0) await lockTables(transaction, schema, LOCK_ATTEMPTS);
    for (const file of pending) await applyTables(transaction, schema, file);
    if (applied.size === 0 && lanes) {
      await transaction`UPDATE lanes SET is_owned = lane = ANY (${`{${lanes.join(",")}}`}::smallint[])`;
    }
    await distribution?.distribute(transaction, schema);
    functions = await applyFunctions(transaction, schema, await functionsFor(at, transaction));
    await distribution?.adapt(transaction, schema);
  });
  const moves = await createPartitions(sql, schema);
  return { tables: pending.map(({ name }) => name), functions, moves };
}

async function requirePostgres(sql: Sql): Promise<void> {
  const [row] = await sql<{ version: string }[]>`SELECT current_setting('server_version_num') AS version`;
  if (Number(row?.version) < OLDEST_POSTGRESQL) {
    throw new MigrationError(`PostgreSQL 15 or newer is needed, this is ${row?.version}`);
  }
}

/** With the functions of plain PostgreSQL, calls during a move of a distributed schema would lose money. */
async function requireUndistributed(sql: Sql, schema: string): Promise<void> {
  const [catalog] = await sql`SELECT to_regclass('pg_catalog.pg_dist_schema') IS NOT NULL AS present`;
  if (catalog?.present !== true) return;
  const [found] = await sql`SELECT 1 FROM pg_dist_schema WHERE schemaid = to_regnamespace(${schema})`;
  if (found) {
    throw new MigrationError(
      `the schema "${schema}" is distributed by Citus: name the database in a cells.yaml, with engine: citus`,
    );
  }
}

async function readState(sql: Sql, schema: string): Promise<State | undefined> {
  const name = `${schema}.schema_version()`;
  const [found] = await sql`SELECT to_regprocedure(${name}) IS NOT NULL AS present`;
  if (found?.present !== true) return undefined;
  const [row] = await sql.unsafe<State[]>(`SELECT * FROM ${name}`);
  if (row?.release === undefined) {
    throw new MigrationError(
      "the schema of the database is older than the first release and cannot be migrated; use an empty database, or another VX_DATA_DIR",
    );
  }
  return row;
}

function isOlder(release: string, than: string): boolean {
  return compareReleases(release, than) < 0;
}

function requireCompatible(state: State): void {
  if (!isOlder(RELEASE, state.oldest_release)) return;
  throw new MigrationError(
    `the database was migrated by release ${state.release}, which needs servers of release ${state.oldest_release} or newer; this is ${RELEASE}`,
  );
}

/** True for the owner; false for a login that only has the server's role. */
async function mayReadMigrations(sql: Sql, schema: string): Promise<boolean> {
  const [row] = await sql`SELECT has_table_privilege(${`${schema}.migrations`}, 'SELECT') AS allowed`;
  return row?.allowed === true;
}

async function pendingFiles(at: OpenSchema): Promise<AppliedFiles> {
  const { sql, schema, tables } = at;
  const applied = await readChecksums(sql, schema, "migrations");
  verify(applied, tables);
  const known = await readChecksums(sql, schema, "functions");
  const functions = changedNames(known, await functionsFor(at, sql));
  return { tables: tables.slice(applied.size).map(({ name }) => name), functions: functions.length };
}

export function isEmpty({ tables, functions }: AppliedFiles): boolean {
  return tables.length === 0 && functions === 0;
}

async function prepare(sql: Sql, schema: string): Promise<void> {
  await sql.unsafe(`
    DO $$ BEGIN
      IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'vx_app') THEN
        CREATE ROLE vx_app LOGIN;
      END IF;
    -- Roles belong to all databases of a server: a migration of another database may have created it meanwhile.
    EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
    END $$;`);
  await joinRole(sql);
  await sql.unsafe(`
    CREATE SCHEMA IF NOT EXISTS ${schema};
    GRANT USAGE ON SCHEMA ${schema} TO vx_app;
    CREATE TABLE IF NOT EXISTS ${schema}.migrations (
      version integer PRIMARY KEY, name text NOT NULL, checksum text NOT NULL, applied_at timestamptz NOT NULL
    );
    CREATE TABLE IF NOT EXISTS ${schema}.functions (
      name text PRIMARY KEY, checksum text NOT NULL, applied_at timestamptz NOT NULL
    );
    CREATE TABLE IF NOT EXISTS ${schema}.releases (
      release text PRIMARY KEY, oldest_release text NOT NULL, applied_at timestamptz NOT NULL
    );`);
}

/**
 * Lets this login assume the role of the servers. Since PostgreSQL 16, a login that creates a role becomes a member of it
 * that may administer the role, but not assume it.
 */
async function joinRole(sql: Sql): Promise<void> {
  const [row] = await sql`
    SELECT pg_has_role(
      current_user, 'vx_app',
      CASE WHEN current_setting('server_version_num')::integer >= 160000 THEN 'SET' ELSE 'MEMBER' END
    ) AS allowed`;
  if (row?.allowed === true) return;
  await sql`SELECT pg_advisory_lock(${LOCK})`;
  await sql`GRANT vx_app TO CURRENT_USER`;
}

function verify(applied: ReadonlyMap<string, string>, files: readonly SqlFile[]): void {
  [...applied].forEach(([name, checksum], i) => {
    if (checksum !== files[i]?.checksum) {
      throw new MigrationError(`the migration ${name} differs from the one that was applied to this database`);
    }
  });
}

/** Outside of a transaction, so that no lock is kept while rows are read. */
async function prepareOnline({ sql, schema, online }: OpenSchema, pending: readonly SqlFile[]): Promise<void> {
  const names = new Set(pending.map(({ name }) => `${name}${ONLINE}`));
  for (const file of online) {
    if (!names.has(file.name)) continue;
    await sql`SET search_path = ${sql(schema)}, pg_temp`;
    await withShortWaits(sql, schema, LOCK_ATTEMPTS, () => sql.unsafe(file.sql));
  }
}

/**
 * Servers create partitions every hour too, so one that has to wait for a long read of the ledger is left to them. Entries that
 * are in no partition are moved, one month in each transaction; what cannot be moved now stays for the next migration.
 */
async function createPartitions(sql: Sql, schema: string): Promise<readonly Move[]> {
  const moves: Move[] = [];
  const move = async () => {
    for (;;) {
      const [moved] = await sql.unsafe<Move[]>(`SELECT * FROM ${schema}.move_other_month()`);
      if (!moved) return;
      moves.push(moved);
    }
  };
  const create = () => sql.unsafe(`SELECT * FROM ${schema}.create_ledger_partitions()`);
  for (const run of [create, () => withShortWaits(sql, schema, MOVE_ATTEMPTS, move)]) {
    try {
      await run();
    } catch (error) {
      if (!isLockTimeout(error) && !(error instanceof LocksNotAvailable)) throw error;
    }
  }
  return moves;
}

/** The name that create_ledger_partitions and move_other_month give. */
function partitionOf(month: number): string {
  return `ledger_${monthText(month).replace("-", "_")}`;
}

async function applyTables(transaction: Sql, schema: string, { name, sql: text, checksum }: SqlFile): Promise<void> {
  await transaction.unsafe(text);
  await transaction`REVOKE ALL ON ALL TABLES IN SCHEMA ${transaction(schema)} FROM PUBLIC`;
  const version = Number.parseInt(name, 10);
  await transaction`INSERT INTO migrations VALUES (${version}, ${name}, ${checksum}, clock_timestamp())`;
}

/** Runs in a transaction whose search_path is the schema. Functions created there keep that search_path. */
async function inSchema(sql: Sql, schema: string, run: (transaction: Sql) => Promise<void>): Promise<void> {
  await sql.begin(async (transaction) => {
    await transaction`SET LOCAL search_path = ${transaction(schema)}, pg_temp`;
    await run(transaction as unknown as Sql);
  });
}

const CHECK_LOGIN = "check the user and the password in the URL of the database, and its pg_hba.conf";
/** What the operator can do about a refused connection, by SQLSTATE. */
const ADVICE: Readonly<Record<string, string>> = {
  "28000": CHECK_LOGIN,
  "28P01": CHECK_LOGIN,
  "3D000": "create the database, or correct its name in the URL",
};

function explain(error: unknown): MigrationError {
  if (error instanceof MigrationError) return error;
  if (error instanceof TransactionPoolingError || error instanceof LocksNotAvailable) {
    return new MigrationError(error.message);
  }
  const { code, message } = error as { code?: string; message?: string };
  if (code === "42501") {
    return new MigrationError(
      `the schema must be updated, but this login may not (${message}); run 'vx migrate' once as the owner of the database, and GRANT vx_app to this login`,
    );
  }
  const advice = code !== undefined && ADVICE[code] ? `; ${ADVICE[code]}` : "";
  return new MigrationError(`the database cannot be reached or prepared: ${message || code || String(error)}${advice}`, {
    cause: error,
  });
}
