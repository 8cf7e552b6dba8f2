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

  async close(): Promise<void> {
    await this.#sql.end({ timeout: 1 });
  }
}
