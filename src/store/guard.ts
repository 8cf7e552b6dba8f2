import { connect, type DatabaseAddress, type Sql } from "./connect.ts";

const LOCK = 7_665_121;
/** A server that was just killed lets go within this time. */
const WAIT_MS = 2_000;

/** Held by the one server that uses an embedded database; PostgreSQL lets go of it when that process ends. */
export class DatabaseGuard {
  readonly #sql: Sql;

  constructor(address: DatabaseAddress) {
    this.#sql = connect(address, {
      connections: 1,
      statementTimeoutMs: WAIT_MS,
      name: `vx server, process ${process.pid}`,
    });
  }

  /** Undefined when the guard is ours, otherwise the name of who holds it. */
  async take(): Promise<string | undefined> {
    try {
      await this.#sql`SELECT pg_advisory_lock(${LOCK})`;
      return undefined;
    } catch (error) {
      if ((error as { code?: string }).code !== "57014") throw error;
      const [holder] = await this.#sql<{ name: string }[]>`
        SELECT application_name AS name FROM pg_stat_activity JOIN pg_locks USING (pid)
        WHERE locktype = 'advisory' AND granted AND objid = ${LOCK}`;
      return holder?.name ?? "another process";
    }
  }

  /** Whether it is ours now; one that was lost with its connection is taken again, unless another one has it. */
  async hold(): Promise<boolean> {
    // In the session that has the lock this is true without any wait.
    const [row] = await this.#sql<{ ours: boolean }[]>`SELECT pg_try_advisory_lock(${LOCK}) AS ours`;
    return row?.ours === true;
  }

  /** In what goes wrong for the role, PostgreSQL logs no details, such as the row that breaks a rule. */
  async logTersely(role: string): Promise<void> {
    await this.#sql`ALTER ROLE ${this.#sql(role)} SET log_error_verbosity = 'terse'`;
  }

  async maxConnections(): Promise<number> {
    const [row] = await this.#sql<{ max: number }[]>`SELECT current_setting('max_connections')::int AS max`;
    return row?.max ?? 0;
  }

  async close(): Promise<void> {
    await this.#sql.end({ timeout: 1 });
  }
}
