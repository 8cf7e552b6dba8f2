import type postgres from "postgres";
import { expect } from "vitest";

type Explained = { "QUERY PLAN": [{ Plan: Record<string, number> }] };

/** A list of 50 rows reads a page of 8 KiB for each of them and few others. */
const FEW_PAGES = 300;

/** The pages of 8 KiB that a call of a function reads, and the number of rows that it returns. */
export type Reading = { readonly pages: number; readonly rows: number };

export async function pagesOfOneCall(sql: postgres.ISql, call: string): Promise<Reading> {
  const [row] = await sql.unsafe(`EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) SELECT * FROM vx.${call}`);
  const [{ Plan: plan }] = (row as unknown as Explained)["QUERY PLAN"];
  const pages = Number(plan["Shared Hit Blocks"]) + Number(plan["Shared Read Blocks"]);
  return { pages, rows: Number(plan["Actual Rows"]) };
}

/**
 * The least of three calls of a function that writes nothing. If other sessions change many tables meanwhile, PostgreSQL discards what
 * it knows of all tables, and reads a thousand pages to learn it again.
 */
export async function pagesRead(sql: postgres.ISql, call: string): Promise<Reading> {
  const readings: Reading[] = [];
  while (readings.length < 3) readings.push(await pagesOfOneCall(sql, call));
  return readings.reduce((least, reading) => (reading.pages < least.pages ? reading : least));
}

/** Each call reads few pages, before and after the statistics of the table make new plans. */
export async function expectFewPages(sql: postgres.ISql, calls: Readonly<Record<string, number>>, table: string): Promise<void> {
  for (const statement of ["SELECT 1", `ANALYZE vx.${table}`]) {
    await sql.unsafe(statement);
    for (const [call, expected] of Object.entries(calls)) {
      const { pages, rows } = await pagesRead(sql, call);
      expect([call, rows]).toEqual([call, expected]);
      expect(pages, call).toBeLessThan(FEW_PAGES);
    }
  }
}
