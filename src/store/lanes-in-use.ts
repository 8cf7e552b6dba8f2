import type { Lane } from "../domain/lane.ts";
import type { ReadCells } from "./driver/cells.ts";
import { namedCell } from "./named-cell.ts";

/** The lanes of a cell that have accounts, holds or ledger rows. */
export async function lanesInUse(database: ReadCells, cell: number): Promise<Lane[]> {
  const rows = await namedCell(database, cell).call<{ lanes_in_use: Lane }>("lanes_in_use");
  return rows.map((row) => row.lanes_in_use).filter((lane) => database.owns(cell, lane));
}
