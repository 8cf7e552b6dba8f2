import type { Cells } from "./driver/cells.ts";

/** Of all servers that use the database. */
type HoldFigures = { readonly open: number; readonly heldMicros: number; readonly expired: number };

type HoldRow = { readonly holds: bigint; readonly held_micros: bigint; readonly expired: bigint };

export async function readHoldFigures(database: Cells): Promise<HoldFigures> {
  const rows = (await Promise.all(database.all.map((cell) => cell.call<HoldRow>("hold_figures")))).flat();
  const sumOf = (figure: keyof HoldRow) => rows.reduce((sum, row) => sum + Number(row[figure]), 0);
  return { open: sumOf("holds"), heldMicros: sumOf("held_micros"), expired: sumOf("expired") };
}
