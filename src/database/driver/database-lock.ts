import { Connection } from "./connection.ts";
import type { DatabaseAddress } from "./endpoints.ts";
import { Hosts } from "./hosts.ts";

const LOCK = 7_665_121;
/** PostgreSQL releases the lock of a killed server within this time. */
const WAIT_MS = 2_000;

/**
 * A lock that lets only one server, or one command, use an embedded database. PostgreSQL releases it when that process ends.
 */
export class DatabaseLock {
  readonly #connection: Connection;

  /** `program` names this process to others that need the lock. */
  constructor(address: DatabaseAddress, program: string) {
    this.#connection = new Connection(new Hosts(address), {
      statementTimeoutMs: WAIT_MS,
      name: `vx ${program}, process ${process.pid}`,
    });
  }

  /** Undefined if the lock was acquired, otherwise the name of the connection that holds it. */
  async acquire(): Promise<string | undefined> {
    try {
      await this.#query("SELECT pg_advisory_lock($1::bigint)", LOCK);
      return undefined;
    } catch (error) {
      if ((error as { code?: string }).code !== "57014") throw error;
      const [holder] = await this.#query<{ name: string }>(
        `SELECT application_name AS name FROM pg_stat_activity JOIN pg_locks USING (pid)
         WHERE locktype = 'advisory' AND granted AND objid = $1::bigint`,
        LOCK,
      );
      return holder?.name ?? "another process";
    }
  }

  /** Whether this server holds the lock. A lock lost with its connection is acquired again if it is free. */
  async ensureHeld(): Promise<boolean> {
    // Succeeds at once in the session that holds the lock.
    const [row] = await this.#query<{ ours: boolean }>("SELECT pg_try_advisory_lock($1::bigint) AS ours", LOCK);
    return row?.ours === true;
  }

  /** Makes PostgreSQL log this role's errors without details, such as the row that violates a constraint. */
  async logTersely(role: string): Promise<void> {
    await this.#query(`ALTER ROLE ${role} SET log_error_verbosity = 'terse'`);
  }

  /** Takes the verifier that PostgreSQL stores, so that no statement contains the password. */
  async setPassword(role: string, verifier: string): Promise<void> {
    await this.#query(`ALTER ROLE ${role} PASSWORD '${verifier}'`);
  }

  async maxConnections(): Promise<number> {
    const [row] = await this.#query<{ max: number }>("SELECT current_setting('max_connections')::int AS max");
    return row?.max ?? 0;
  }

  async close(): Promise<void> {
    await this.#connection.close();
  }

  async #query<Row>(text: string, ...parameters: number[]): Promise<Row[]> {
    return (await this.#connection.query(text, parameters)) as Row[];
  }
}
