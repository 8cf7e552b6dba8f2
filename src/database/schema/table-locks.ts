import { setTimeout } from "node:timers/promises";
import type { Sql } from "../driver/connect.ts";
import { inSavepoint } from "./savepoint.ts";

/** The error codes of a wait for a lock that exceeds lock_timeout or statement_timeout. */
const LOCK_NOT_AVAILABLE = "55P03";
const QUERY_CANCELED = "57014";
const PAUSE_MS = 1_000;

/** Another session kept a lock during all attempts. */
export class LocksNotAvailable extends Error {}

/**
 * Locks all tables and views of a schema until the end of the transaction, so that the transaction waits for no lock
 * afterwards. Without this, a migration and a statement of a server could wait for each other, and PostgreSQL would
 * cancel one of them.
 *
 * A deadlock is still possible while the locks are collected, so an attempt ends before deadlock_timeout, after which
 * PostgreSQL would look for one.
 */
export async function lockTables(transaction: Sql, schema: string, attempts: number): Promise<void> {
  // Money is moved with the lanes locked, so the lanes come first.
  const [row] = await transaction<{ names: string; deadlock_ms: number; timeout: string }[]>`
    SELECT string_agg(c.oid::regclass::text, ', ' ORDER BY c.relname <> 'lanes', c.relname) AS names,
           (SELECT setting::integer FROM pg_settings WHERE name = 'deadlock_timeout') AS deadlock_ms,
           current_setting('statement_timeout') AS timeout
    FROM pg_class c
    WHERE c.relnamespace = ${schema}::regnamespace AND c.relkind IN ('r', 'p', 'v') AND NOT c.relispartition`;
  if (!row) throw new Error(`the schema ${schema} has no tables`);
  const collectMs = Math.max(1, Math.floor(row.deadlock_ms * 0.8));
  await tryWithin(transaction, schema, attempts, () =>
    inSavepoint(transaction, async (attempt) => {
      // Autovacuum gives way to a statement that has waited for deadlock_timeout. This lock waits for that without blocking
      // reads or writes of callers.
      await attempt.unsafe(`LOCK TABLE ${row.names} IN SHARE UPDATE EXCLUSIVE MODE`);
      await attempt.unsafe(`SET LOCAL statement_timeout = ${collectMs}`);
      await attempt.unsafe(`LOCK TABLE ${row.names} IN ACCESS EXCLUSIVE MODE`);
      await attempt`SELECT set_config('statement_timeout', ${row.timeout}, true)`;
    }),
  );
}

/**
 * Runs statements outside of a transaction, each of which needs a lock of one table. Callers queue behind a statement that
 * waits for a lock, so each attempt waits only for as long as it takes to end autovacuum.
 */
export async function withShortWaits(sql: Sql, schema: string, attempts: number, run: () => Promise<unknown>): Promise<void> {
  const [row] = await sql<{ deadlock_ms: number }[]>`
    SELECT setting::integer AS deadlock_ms FROM pg_settings WHERE name = 'deadlock_timeout'`;
  await sql.unsafe(`SET lock_timeout = ${Math.ceil((row?.deadlock_ms ?? 1_000) * 1.5)}`);
  try {
    await tryWithin(sql, schema, attempts, run);
  } finally {
    await sql`RESET lock_timeout`;
  }
}

async function tryWithin(sql: Sql, schema: string, attempts: number, run: () => Promise<unknown>): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      await run();
      return;
    } catch (error) {
      if (!isLockTimeout(error)) throw error;
      if (attempt >= attempts) throw new LocksNotAvailable(await describeHolder(sql, schema));
    }
    await setTimeout(PAUSE_MS);
  }
}

export function isLockTimeout(error: unknown): boolean {
  const { code } = error as { code?: string };
  return code === LOCK_NOT_AVAILABLE || code === QUERY_CANCELED;
}

async function describeHolder(sql: Sql, schema: string): Promise<string> {
  const [holder] = await sql<{ pid: number; application: string; seconds: number }[]>`
    SELECT a.pid, a.application_name AS application,
           extract(epoch FROM clock_timestamp() - a.xact_start)::integer AS seconds
    FROM pg_locks l
    JOIN pg_class c ON c.oid = l.relation AND c.relnamespace = ${schema}::regnamespace
    JOIN pg_stat_activity a ON a.pid = l.pid
    WHERE l.granted AND l.pid <> pg_backend_pid() AND l.database = (
      SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
    ORDER BY a.xact_start LIMIT 1`;
  if (!holder) return "other sessions kept the tables of the schema locked; try again";
  const { pid, application, seconds } = holder;
  return (
    `the backend ${pid} ("${application}") keeps the tables of the schema locked, with a transaction of ${seconds} s; ` +
    `end it, for example with SELECT pg_terminate_backend(${pid}), and try again`
  );
}
