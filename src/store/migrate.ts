import { hash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { connect, type DatabaseAddress, type Sql, TransactionPoolingError } from "./connect.ts";

/** One clear line for the person who starts the server. */
export class MigrationError extends Error {}

type Migration = {
  readonly version: number;
  readonly name: string;
  readonly sql: string;
  readonly checksum: string;
};
type Applied = { version: number; name: string; checksum: string };

const FOLDER = new URL("./migrations/", import.meta.url);
/** Any number will do, as long as every version of the server takes the same one. */
const LOCK = 7_665_120;
const OLDEST_POSTGRESQL = 150_000;
const MIGRATION_TIMEOUT_MS = 10 * 60_000;

/** Brings the schema to the version of this code. Safe when several servers start at once. */
export async function migrate(address: DatabaseAddress): Promise<void> {
  let sql: Sql | undefined;
  try {
    sql = await connect(address, { statementTimeoutMs: MIGRATION_TIMEOUT_MS, name: "vx migrate" });
    await requirePostgres(sql);
    const migrations = readMigrations();
    // A login that may only execute functions can still start a server whose schema is up to date.
    const version = await currentVersion(sql);
    if (version === migrations.length) {
      if (await mayReadMigrations(sql)) verify(await readApplied(sql), migrations);
      return;
    }
    if (version > migrations.length) {
      throw new MigrationError(
        `the database is newer than this code: its schema has version ${version}, this code knows ${migrations.length}`,
      );
    }
    await sql`SELECT pg_advisory_lock(${LOCK})`;
    await prepare(sql);
    const applied = await readApplied(sql);
    verify(applied, migrations);
    for (const migration of migrations.slice(applied.length)) await apply(sql, migration);
  } catch (error) {
    throw explain(error);
  } finally {
    await sql?.end({ timeout: 5 });
  }
}

function readMigrations(): Migration[] {
  const files = readdirSync(FOLDER)
    .filter((file) => file.endsWith(".sql"))
    .sort();
  return files.map((name) => {
    const sql = readFileSync(new URL(name, FOLDER), "utf8");
    return { version: Number.parseInt(name, 10), name, sql, checksum: hash("sha256", sql, "hex") };
  });
}

async function requirePostgres(sql: Sql): Promise<void> {
  const [row] = await sql<{ version: string }[]>`SELECT current_setting('server_version_num') AS version`;
  if (Number(row?.version) < OLDEST_POSTGRESQL) {
    throw new MigrationError(`PostgreSQL 15 or newer is needed, this is ${row?.version}`);
  }
}

/** 0 if nothing is there yet. */
async function currentVersion(sql: Sql): Promise<number> {
  const [found] = await sql`SELECT to_regprocedure('vx.schema_version()') IS NOT NULL AS present`;
  if (found?.present !== true) return 0;
  const [row] = await sql<{ version: number }[]>`SELECT vx.schema_version() AS version`;
  return row?.version ?? 0;
}

function readApplied(sql: Sql): Promise<Applied[]> {
  return sql<Applied[]>`SELECT version, name, checksum FROM vx.migrations ORDER BY version`;
}

/** The owner may; a login that only acts as the server's role may not. */
async function mayReadMigrations(sql: Sql): Promise<boolean> {
  const [row] = await sql`SELECT has_table_privilege('vx.migrations', 'SELECT') AS allowed`;
  return row?.allowed === true;
}

async function prepare(sql: Sql): Promise<void> {
  await sql.unsafe(`
    DO $$ BEGIN
      IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'vx_app') THEN
        CREATE ROLE vx_app LOGIN;
      END IF;
    -- Roles belong to all databases of a server: another one may have been faster.
    EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
    END $$;
    DO $$ BEGIN
      IF NOT pg_has_role(current_user, 'vx_app', 'MEMBER') THEN
        EXECUTE format('GRANT vx_app TO %I', current_user);
      END IF;
    END $$;
    CREATE SCHEMA IF NOT EXISTS vx;
    CREATE TABLE IF NOT EXISTS vx.migrations (
      version integer PRIMARY KEY, name text NOT NULL, checksum text NOT NULL, applied_at timestamptz NOT NULL
    );`);
}

function verify(applied: readonly Applied[], migrations: readonly Migration[]): void {
  applied.forEach((row, i) => {
    if (row.checksum !== migrations[i]?.checksum) {
      throw new MigrationError(`the database was made with another version of migration ${row.name}`);
    }
  });
}

async function apply(sql: Sql, migration: Migration): Promise<void> {
  await sql.begin(async (transaction) => {
    await transaction.unsafe(migration.sql);
    const { version, name, checksum } = migration;
    await transaction`INSERT INTO vx.migrations VALUES (${version}, ${name}, ${checksum}, clock_timestamp())`;
  });
}

function explain(error: unknown): MigrationError {
  if (error instanceof MigrationError) return error;
  if (error instanceof TransactionPoolingError) return new MigrationError(error.message);
  const { code, message } = error as { code?: string; message?: string };
  if (code === "42501") {
    return new MigrationError(
      `the schema must be updated, but this login may not (${message}); run 'vx migrate' once as the owner of the database, and GRANT vx_app to this login`,
    );
  }
  return new MigrationError(
    `the database cannot be reached or prepared: ${message || code || String(error)}`,
  );
}
