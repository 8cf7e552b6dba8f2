import type { Lane } from "../../domain/lane.ts";
import { connect, type DatabaseAddress, type Sql } from "../driver/connect.ts";
import { readSplit, requireMonitoring, type Split } from "./split-state.ts";

const STATEMENT_TIMEOUT_MS = 10_000;

/** The cell that gives up lanes, with the rights of its owner. */
export class SplitSource {
  readonly #sql: Sql;
  readonly #schema: string;

  private constructor(sql: Sql, schema: string) {
    this.#sql = sql;
    this.#schema = schema;
  }

  static async open(address: DatabaseAddress, schema: string): Promise<SplitSource> {
    const options = { statementTimeoutMs: STATEMENT_TIMEOUT_MS, name: "vx cells split" };
    return new SplitSource(await connect(address, options), schema);
  }

  async close(): Promise<void> {
    await this.#sql.end({ timeout: 5 });
  }

  /** Throws if this login cannot see the standbys. */
  async requireMonitoring(): Promise<void> {
    await requireMonitoring(this.#sql, "the source");
  }

  async lastSplit(): Promise<Split | undefined> {
    return await readSplit(this.#sql, this.#schema, null);
  }

  async findSplit(id: string): Promise<Split | undefined> {
    return await readSplit(this.#sql, this.#schema, id);
  }

  async ownedLanes(): Promise<ReadonlySet<Lane>> {
    const rows = await this.#sql<{ lane: Lane }[]>`
      SELECT lane FROM ${this.#sql(this.#schema)}.lanes WHERE is_owned`;
    return new Set(rows.map(({ lane }) => lane));
  }

  async begin(id: string, source: string, target: string, lanes: readonly Lane[]): Promise<void> {
    await this.#call("begin_split", id, source, target, `{${lanes.join(",")}}`);
  }

  /** Makes a change that the standby must replay. Returns its time, which no earlier change has. */
  async touch(id: string): Promise<Date> {
    const [row] = await this.#sql<{ at: Date }[]>`
      UPDATE ${this.#sql(this.#schema)}.cell_splits
      SET changed_at = greatest(clock_timestamp(), changed_at + interval '1 millisecond')
      WHERE id = ${id} RETURNING changed_at AS at`;
    return row?.at ?? new Date(0);
  }

  async release(id: string): Promise<void> {
    await this.#call("release_lanes", id);
  }

  async takeBack(id: string): Promise<void> {
    await this.#call("return_lanes", id);
  }

  /** Fails after a failover of the source: the standby may then have a confirmation that the source lacks. */
  async abort(id: string): Promise<void> {
    await this.#call("abort_split", id);
  }

  async setState(id: string, from: Split["state"], to: Split["state"]): Promise<void> {
    await this.#call("set_split_state", id, from, to);
  }

  /**
   * The transactions that read or lock the table of lanes. A statement locks the table before it takes the snapshot
   * with which it checks the owner, so a transaction that is not in this list sees every earlier commit.
   */
  async transactions(): Promise<ReadonlySet<string>> {
    const rows = await this.#sql<{ id: string }[]>`
      SELECT DISTINCT virtualtransaction AS id FROM pg_locks
      WHERE locktype = 'relation' AND relation = ${`${this.#schema}.lanes`}::regclass AND pid <> pg_backend_pid()
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`;
    return new Set(rows.map(({ id }) => id));
  }

  /** The end of the write-ahead log that is on disk. */
  async position(): Promise<string> {
    const [row] = await this.#sql<{ at: string }[]>`SELECT pg_current_wal_flush_lsn()::text AS at`;
    return row?.at ?? "";
  }

  /** The attached standbys that do not have the write-ahead log up to this position on disk. */
  async standbysBehind(position: string): Promise<string[]> {
    // Archivers replay nothing, and a logical subscriber cannot replace the source. If the privilege of pg_monitor was
    // revoked meanwhile, every column but the pid is null.
    const rows = await this.#sql<{ name: string }[]>`
      SELECT coalesce(application_name, 'hidden from logins without pg_monitor') AS name FROM pg_stat_replication r
      WHERE (r.state IS NULL OR r.replay_lsn IS NOT NULL AND r.flush_lsn < ${position}::pg_lsn)
        AND NOT EXISTS (SELECT FROM pg_replication_slots s WHERE s.active_pid = r.pid AND s.slot_type = 'logical')`;
    return rows.map(({ name }) => name);
  }

  /** The servers whose cells.yaml has no cell of this name. */
  async serversWithout(cell: string): Promise<string[]> {
    const rows = await this.#sql<{ id: string }[]>`
      SELECT id FROM ${this.#sql(this.#schema)}.servers
      WHERE seen_at > clock_timestamp() - interval '20 seconds' AND NOT cells::jsonb ? ${cell} ORDER BY id`;
    return rows.map(({ id }) => id);
  }

  /** Whether commits wait for a standby of this name. */
  async isSynchronous(standby: string): Promise<boolean> {
    const rows = await this.#sql`
      SELECT FROM pg_stat_replication WHERE application_name = ${standby} AND sync_state IN ('sync', 'quorum')`;
    return rows.length > 0;
  }

  async #call(name: string, ...parameters: string[]): Promise<void> {
    const places = parameters.map((_, i) => `$${i + 1}`).join(",");
    await this.#sql.unsafe(`SELECT ${this.#schema}.${name}(${places})`, parameters);
  }
}
