import { pipeline } from "node:stream/promises";
import { connect, type DatabaseAddress, type Sql } from "../driver/connect.ts";
import { BackupError } from "./backup-format.ts";

/** The longest step reads or writes one table. */
const STATEMENT_TIMEOUT_MS = 24 * 3_600_000;

type CopyOptions = {
  readonly from: DatabaseAddress;
  /** A database with the same schema, whose rows are replaced. */
  readonly to: DatabaseAddress;
  readonly signal: AbortSignal;
  readonly onProgress: (bytesDone: number, bytesInTotal: number) => void;
};

type Table = { readonly name: string; readonly columns: string; readonly bytes: number };

/** Copies all rows of the schema vx in one transaction, and compares each table before the commit. */
export async function copyDatabase({ from, to, signal, onProgress }: CopyOptions): Promise<void> {
  const session = { statementTimeoutMs: STATEMENT_TIMEOUT_MS, name: "vx copy" };
  const source = await connect(from, session);
  try {
    const target = await connect(to, session);
    try {
      const tables = await tablesOf(source);
      const names = ({ name, columns }: Table) => `${name} (${columns})`;
      const expected = (await tablesOf(target)).map(names).join("; ");
      if (tables.map(names).join("; ") !== expected)
        throw new BackupError("the tables of the database are not those of this release");
      await copyTables(source, target, tables, signal, onProgress);
      await target`ANALYZE`;
    } finally {
      await target.end({ timeout: 5 });
    }
  } finally {
    await source.end({ timeout: 5 });
  }
}

/**
 * Each table after those that it refers to. A partitioned table is one table: the partitions depend on when each database was
 * created.
 */
export async function tablesOf(sql: Sql): Promise<Table[]> {
  return await sql<Table[]>`
    WITH RECURSIVE levels (oid, level) AS (
      SELECT oid, 0 FROM pg_class WHERE relnamespace = 'vx'::regnamespace AND relkind IN ('r', 'p')
      UNION
      SELECT k.conrelid, l.level + 1 FROM levels l JOIN pg_constraint k ON k.contype = 'f' AND k.confrelid = l.oid
    )
    SELECT format('vx.%I', c.relname) AS name,
           coalesce((SELECT sum(pg_total_relation_size(t.relid)) FROM pg_partition_tree(c.oid) t),
             pg_total_relation_size(c.oid))::float8 AS bytes,
           (SELECT string_agg(quote_ident(a.attname), ', ' ORDER BY a.attname) FROM pg_attribute a
            WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = '') AS columns
    FROM pg_class c WHERE c.relnamespace = 'vx'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
    ORDER BY (SELECT max(l.level) FROM levels l WHERE l.oid = c.oid), c.relname`;
}

async function copyTables(
  source: Sql,
  target: Sql,
  tables: readonly Table[],
  signal: AbortSignal,
  onProgress: (bytesDone: number, bytesInTotal: number) => void,
): Promise<void> {
  const inTotal = tables.reduce((sum, { bytes }) => sum + bytes, 0);
  let done = 0;
  await target`BEGIN`;
  await target.unsafe(`TRUNCATE ${tables.map(({ name }) => name).join(", ")}`);
  for (const { name, columns, bytes } of tables) {
    const rows = await source.unsafe(`COPY (SELECT ${columns} FROM ${name}) TO STDOUT`).readable();
    await pipeline(rows, await target.unsafe(`COPY ${name} (${columns}) FROM STDIN`).writable(), { signal });
    done += bytes;
    onProgress(done, inTotal);
  }
  for (const { name } of tables) await compare(source, target, name);
  await target`COMMIT`;
}

async function compare(source: Sql, target: Sql, name: string): Promise<void> {
  const [before, after] = await Promise.all([fingerprint(source, name), fingerprint(target, name)]);
  if (before !== after) throw new BackupError(`the rows of ${name} differ after the copy: ${before}, ${after}`);
}

/** The number of rows, and the sum of their hashes. */
async function fingerprint(sql: Sql, name: string): Promise<string | undefined> {
  const [row] = await sql.unsafe<{ text: string }[]>(
    `SELECT count(*) || ' ' || coalesce(sum(hashtextextended(t::text, 0)::numeric), 0) AS text FROM ${name} t`,
  );
  return row?.text;
}
