import * as sql from "../../gen/sql/calls.ts";
import type { Cells } from "../database/driver/cells.ts";

/** Totals across all servers. */
export async function readServiceFigures(database: Cells) {
  const figures = (await Promise.all(database.all.map((cell) => sql.serviceFigures(cell)))).flat();
  return {
    // Every server is present in every cell.
    servers: Math.max(...figures.map(({ servers }) => Number(servers))),
    runningGenerations: figures.reduce((sum, { generations }) => sum + generations, 0n),
    heldMicros: figures.reduce((sum, { held_micros }) => sum + held_micros, 0n),
  };
}

/** Totals across all servers. */
type HoldFigures = { readonly open: number; readonly heldMicros: number; readonly expired: number };

export async function readHoldFigures(database: Cells): Promise<HoldFigures> {
  const rows = (await Promise.all(database.all.map((cell) => sql.holdFigures(cell)))).flat();
  const sumOf = (figure: keyof sql.HoldFiguresRow) => rows.reduce((sum, row) => sum + Number(row[figure]), 0);
  return { open: sumOf("holds"), heldMicros: sumOf("held_micros"), expired: sumOf("expired") };
}
