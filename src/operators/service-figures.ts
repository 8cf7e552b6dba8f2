import * as sql from "../../gen/sql/calls.ts";
import type { Cells } from "../database/driver/cells.ts";

/** Totals across all servers. */
export type ServiceFigures = sql.ServiceFiguresRow;

export async function readServiceFigures(database: Cells): Promise<ServiceFigures> {
  const figures = await Promise.all(database.all.map((cell) => sql.serviceFigures(cell)));
  // Every server is present in every cell.
  return figures.flat().reduce((sum, cell) => ({
    servers: cell.servers > sum.servers ? cell.servers : sum.servers,
    generations: sum.generations + cell.generations,
    held_micros: sum.held_micros + cell.held_micros,
  }));
}

/** Totals across all servers. */
type HoldFigures = { readonly open: number; readonly heldMicros: number; readonly expired: number };

export async function readHoldFigures(database: Cells): Promise<HoldFigures> {
  const rows = (await Promise.all(database.all.map((cell) => sql.holdFigures(cell)))).flat();
  const sumOf = (figure: keyof sql.HoldFiguresRow) => rows.reduce((sum, row) => sum + Number(row[figure]), 0);
  return { open: sumOf("holds"), heldMicros: sumOf("held_micros"), expired: sumOf("expired") };
}
