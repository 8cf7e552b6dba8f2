import type postgres from "postgres";

type Explained = { "QUERY PLAN": [{ Plan: Record<string, number> }] };

/** The number of pages of 8 KiB that a call of a function reads, and of rows that it returns. */
export async function pagesRead(sql: postgres.ISql, call: string): Promise<{ pages: number; rows: number }> {
  const [row] = await sql.unsafe(`EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) SELECT * FROM vx.${call}`);
  const [{ Plan: plan }] = (row as unknown as Explained)["QUERY PLAN"];
  const pages = Number(plan["Shared Hit Blocks"]) + Number(plan["Shared Read Blocks"]);
  return { pages, rows: Number(plan["Actual Rows"]) };
}
