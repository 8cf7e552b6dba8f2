import { readCells } from "../app/cells-file.ts";
import { ConfigError } from "../app/config-error.ts";
import type { CellToMigrate } from "../store/schema/migrate-cell.ts";
import { usageFailure } from "./failure.ts";
import { readSettings } from "./target.ts";

/** The cells of VX_CELLS. */
export async function readCellSettings(): Promise<readonly CellToMigrate[]> {
  const { cellsFile } = readSettings(process.env, ["VX_CELLS"]);
  if (cellsFile === undefined) throw usageFailure("VX_CELLS is not set; set it to the path of cells.yaml");
  try {
    return (await readCells(cellsFile)) ?? [];
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    throw usageFailure(`invalid setting: ${error.message.replaceAll("\n", "; ")}`);
  }
}
