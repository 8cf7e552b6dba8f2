import type postgres from "postgres";

type Explained = { "QUERY PLAN": [{ Plan: Record<string, number> }] };

/**
 * The number of pages of 8 KiB that a call of a function reads, and of rows that it returns. It is the least of three runs: if other
 * sessions change many tables meanwhile, PostgreSQL discards what it knows of all tables, and reads a thousand pages to learn it again.
 */
export async function pagesRead(sql: postgres.ISql, call: string): Promise<{ pages: number; rows: number }> {
  const runs: { pages: number; rows: number }[] = [];
  while (runs.length < 3) {
    const [row] = await sql.unsafe(`EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) SELECT * FROM vx.${call}`);
    const [{ Plan: plan }] = (row as unknown as Explained)["QUERY PLAN"];
    const pages = Number(plan["Shared Hit Blocks"]) + Number(plan["Shared Read Blocks"]);
    runs.push({ pages, rows: Number(plan["Actual Rows"]) });
  }
  return runs.sort((a, b) => a.pages - b.pages)[0] as { pages: number; rows: number };
}
