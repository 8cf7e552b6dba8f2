import type { Lane } from "../../domain/lane.ts";
import { connect, type DatabaseAddress, type Sql } from "../driver/connect.ts";

/** A reason why entries cannot be archived, as a message for the operator. */
export class ArchiveError extends Error {}

/** Summing up the usage of an account reads all of its entries of a month. */
const STATEMENT_TIMEOUT_MS = 24 * 3_600_000;
/** An arbitrary number, different from those of other locks. */
const LOCK = 7_665_122;
const LINES_PER_STATEMENT = 2_000;
const HEADS_PER_STATEMENT = 1_000;

export type LedgerPlace = {
  readonly address: DatabaseAddress;
  readonly schema: string;
  /** The name of the cell that must be there; undefined without cells. */
  readonly cell: string | undefined;
};

export type Archive = {
  /** Its last month. */
  readonly month: number;
  readonly file: string;
  readonly sha256: string;
  readonly entries: number;
  /** Undefined while the ledger still has the entries. */
  readonly removedAt: Date | undefined;
};

/** The entries of an account in an archive: those after one number, up to another. */
export type ArchivedHead = {
  readonly lane: number;
  readonly accountId: string;
  readonly before: EntryEnd;
  readonly last: EntryEnd;
};

type EntryEnd = { readonly seq: number; readonly balanceMicros: number; readonly hash: string };

type HeadRow = {
  lane: number;
  account_id: string;
  before_seq: bigint;
  before_balance_micros: bigint;
  before_hash: Buffer;
  seq: bigint;
  balance_micros: bigint;
  hash: Buffer;
};

/** The ledger, as the owner of its tables sees it. */
export class ArchiveDatabase {
  readonly #sql: Sql;
  readonly #schema: string;

  private constructor(sql: Sql, schema: string) {
    this.#sql = sql;
    this.#schema = schema;
  }

  static async open({ address, schema, cell }: LedgerPlace): Promise<ArchiveDatabase> {
    const options = { statementTimeoutMs: STATEMENT_TIMEOUT_MS, name: "vx archive" };
    const sql = await connect(address, options).catch((error: Error) => {
      throw new ArchiveError(`the database cannot be used: ${error.message}`);
    });
    const database = new ArchiveDatabase(sql, schema);
    try {
      if (cell !== undefined) await database.#requireName(cell);
      return database;
    } catch (error) {
      await database.close();
      throw error;
    }
  }

  /** A database whose cell was never split does not store the name of the cell. */
  async #requireName(cell: string): Promise<void> {
    const [row] = await this.#sql<{ name: string | null }[]>`SELECT name FROM ${this.#in}.cell_state()`;
    if (row?.name != null && row.name !== cell) throw new ArchiveError(`the database is the cell "${row.name}"`);
  }

  get #in() {
    return this.#sql(this.#schema);
  }

  async close(): Promise<void> {
    await this.#sql.end({ timeout: 5 });
  }

  /** Takes the lock until the connection ends. */
  async lock(): Promise<void> {
    const [row] = await this.#sql<{ locked: boolean }[]>`
      SELECT pg_try_advisory_lock(${LOCK}, hashtext(${this.#schema})) AS locked`;
    if (!row?.locked) throw new ArchiveError("another 'vx archive' is running on this database");
  }

  /** Entries without a partition are in no archive until a later month is archived. */
  async moveOtherMonths(): Promise<void> {
    await this.#sql`SET lock_timeout = '1s'`;
    while ((await this.#sql`SELECT * FROM ${this.#in}.move_other_month()`).length > 0);
    await this.#sql`RESET lock_timeout`;
  }

  /** The partitions that can be archived, oldest first. */
  async partitions(): Promise<{ name: string; last_month: number }[]> {
    return await this.#sql<{ name: string; last_month: number }[]>`SELECT * FROM ${this.#in}.archivable_partitions()`;
  }

  async archives(): Promise<Archive[]> {
    const rows = await this.#sql<
      { month: number; file: string; sha256: Buffer; entries: bigint; removed_at: Date | null }[]
    >`SELECT * FROM ${this.#in}.list_archives()`;
    return rows.map(({ sha256, entries, removed_at, ...row }) => ({
      ...row,
      sha256: sha256.toString("hex"),
      entries: Number(entries),
      removedAt: removed_at ?? undefined,
    }));
  }

  async lanes(): Promise<Lane[]> {
    const rows = await this.#sql<{ lane: Lane }[]>`SELECT lane FROM ${this.#in}.lanes_in_use() AS l (lane) ORDER BY lane`;
    return rows.map(({ lane }) => lane);
  }

  async forgetUnfinished(): Promise<void> {
    await this.#sql`SELECT ${this.#in}.forget_unfinished_archives()`;
  }

  /** Selects the entries of the archive; returns their number. */
  async addHeads(lane: number, month: number): Promise<number> {
    const [row] = await this.#sql<{ entries: bigint }[]>`
      SELECT * FROM ${this.#in}.add_archived_heads(${lane}::smallint, ${month}::integer)`;
    return Number(row?.entries ?? 0n);
  }

  /** The lines of the file, in its order. */
  async *lines(month: number): AsyncGenerator<string[]> {
    for (const lane of await this.lanes()) {
      let [accountId, seq] = ["", 0n];
      for (;;) {
        const rows = await this.#sql<{ account_id: string; seq: bigint; line: string; is_charge_right: boolean }[]>`
          SELECT * FROM ${this.#in}.entries_to_archive(${lane}::smallint, ${month}::integer, ${accountId}, ${seq}::bigint,
            ${LINES_PER_STATEMENT}::integer)`;
        const wrong = rows.find((row) => !row.is_charge_right);
        if (wrong) {
          throw new ArchiveError(`row ${wrong.seq} of ${wrong.account_id} was not charged at its prices; run vx audit`);
        }
        if (rows.length > 0) yield rows.map(({ line }) => line);
        const last = rows.at(-1);
        if (!last || rows.length < LINES_PER_STATEMENT) break;
        [accountId, seq] = [last.account_id, last.seq];
      }
    }
  }

  /** The accounts of an archive, in the order of its file. */
  async *heads(month: number): AsyncGenerator<ArchivedHead> {
    let [lane, accountId] = [-1, ""];
    for (;;) {
      const rows = await this.#sql<HeadRow[]>`
        SELECT * FROM ${this.#in}.heads_of_archive(${month}::integer, ${lane}::smallint, ${accountId},
          ${HEADS_PER_STATEMENT}::integer)`;
      for (const row of rows) {
        yield {
          lane: row.lane,
          accountId: row.account_id,
          before: endOf(row.before_seq, row.before_balance_micros, row.before_hash),
          last: endOf(row.seq, row.balance_micros, row.hash),
        };
      }
      const last = rows.at(-1);
      if (!last || rows.length < HEADS_PER_STATEMENT) return;
      [lane, accountId] = [last.lane, last.account_id];
    }
  }

  async add({ month, file, sha256, entries }: Omit<Archive, "removedAt">): Promise<void> {
    await this.#sql`
      SELECT ${this.#in}.add_archive(${month}::integer, ${file}, ${Buffer.from(sha256, "hex")}::bytea, ${entries}::bigint)`;
  }

  /** False if the ledger was in use for longer than a second, in which case nothing changed. */
  async remove(month: number): Promise<boolean> {
    try {
      await this.#sql`SELECT ${this.#in}.remove_archived_partition(${month}::integer)`;
      return true;
    } catch (error) {
      if (["55P03", "40P01"].includes((error as { code?: string }).code ?? "")) return false;
      throw error;
    }
  }
}

function endOf(seq: bigint, balanceMicros: bigint, hash: Buffer): EntryEnd {
  return { seq: Number(seq), balanceMicros: Number(balanceMicros), hash: hash.toString("hex") };
}
