import type postgres from "postgres";

type Explained = { "QUERY PLAN": [{ Plan: Record<string, number> }] };

/** How many pages of 8 KiB a call of a function of ours reads, and how many rows it gives. */
export async function pagesRead(sql: postgres.ISql, call: string): Promise<{ pages: number; rows: number }> {
  const [row] = await sql.unsafe(`EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) SELECT * FROM vx.${call}`);
  const [{ Plan: plan }] = (row as unknown as Explained)["QUERY PLAN"];
  const pages = Number(plan["Shared Hit Blocks"]) + Number(plan["Shared Read Blocks"]);
  return { pages, rows: Number(plan["Actual Rows"]) };
}
