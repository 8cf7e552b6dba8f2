import type { DatabaseAddress } from "../driver/connect.ts";
import type { Session } from "../driver/connection.ts";
import { openServer, readSplit, requireMonitoring, type Split, SplitError } from "./split-state.ts";

const PROMOTION_SECONDS = 30;

/** A standby of the source, which becomes a cell. */
export class SplitStandby {
  readonly #session: Session;
  readonly #schema: string;

  private constructor(session: Session, schema: string) {
    this.#session = session;
    this.#schema = schema;
  }

  static async open(address: DatabaseAddress, schema: string): Promise<SplitStandby> {
    return new SplitStandby(await openServer(address), schema);
  }

  async close(): Promise<void> {
    await this.#session.close();
  }

  /** Throws if this login cannot see what it receives. */
  async requireMonitoring(): Promise<void> {
    await requireMonitoring(this.#session.sql, "the standby");
  }

  async isInRecovery(): Promise<boolean> {
    const [row] = await this.#session.sql<{ recovers: boolean }[]>`SELECT pg_is_in_recovery() AS recovers`;
    return row?.recovers === true;
  }

  async findSplit(id: string): Promise<Split | undefined> {
    return await readSplit(this.#session.sql, this.#schema, id);
  }

  /** The time since when the server runs: no two servers have the same. */
  async startTime(): Promise<string> {
    return await startTimeOf(this.#session);
  }

  /** Why the server cannot become a cell; undefined if it can. */
  async problem(): Promise<string | undefined> {
    const rows = await this.#session.sql`SELECT FROM pg_stat_wal_receiver`;
    if (rows.length === 0) return "does not receive the write-ahead log of a primary";
    return await this.promotionProblem();
  }

  /** Why a promotion would fail, or the new cell would not accept writes; undefined if neither. */
  async promotionProblem(): Promise<string | undefined> {
    const [row] = await this.#session.sql<{ may_promote: boolean; login: string; synchronous: string }[]>`
      SELECT quote_ident(current_user) AS login,
             has_function_privilege('pg_promote(boolean, integer)', 'EXECUTE') AS may_promote,
             current_setting('synchronous_standby_names') AS synchronous`;
    if (!row?.may_promote)
      return `cannot be promoted by its login; as a superuser of the source, run: GRANT EXECUTE ON FUNCTION pg_promote TO ${row?.login}`;
    if (row.synchronous !== "")
      return "has synchronous_standby_names, so its commits would wait for a standby of its own; reset it there";
    return undefined;
  }

  /** The name that the primary knows this standby by, and its replication slot. */
  async receiver(): Promise<{ readonly name: string; readonly slot: string | undefined }> {
    const [row] = await this.#session.sql<{ name: string; slot: string | null }[]>`
      SELECT coalesce(substring(conninfo FROM '(?:^| )application_name=(\S+)'), nullif(current_setting('cluster_name'), ''),
               'walreceiver') AS name,
             slot_name AS slot
      FROM pg_stat_wal_receiver`;
    return { name: row?.name ?? "", slot: row?.slot ?? undefined };
  }

  async promote(): Promise<void> {
    const [row] = await this.#session.sql<{ done: boolean }[]>`
      SELECT pg_promote(true, ${PROMOTION_SECONDS}) AS done`;
    if (row?.done !== true) throw new SplitError(`the standby was not promoted within ${PROMOTION_SECONDS} s`);
  }

  async claim(id: string): Promise<void> {
    await this.#session.sql.unsafe(`SELECT ${this.#schema}.claim_lanes($1)`, [id]);
  }
}

export async function startTimeOf({ sql }: Session): Promise<string> {
  const [row] = await sql<{ at: string }[]>`SELECT pg_postmaster_start_time()::text AS at`;
  return row?.at ?? "";
}
