import * as sql from "../../../gen/sql/calls.ts";
import { DomainError } from "../../domain/errors.ts";
import type { Lane } from "../../domain/lane.ts";
import type { FunctionCaller, ReadCells } from "../driver/cells.ts";
import type { Parameter } from "../driver/connection.ts";

/** The cell with this index in `all`, for what operators read from every cell: an error names the cell that is unavailable. */
export function namedCell(database: ReadCells, index: number): FunctionCaller {
  const cell = database.all[index] as FunctionCaller;
  const name = database.nameOf(index);
  if (name === "") return cell;
  return {
    call: async <Row>(method: string, ...parameters: Parameter[]) => {
      try {
        return await cell.call<Row>(method, ...parameters);
      } catch (error) {
        throw withName(error, name);
      }
    },
  };
}

function withName(error: unknown, cell: string): unknown {
  if (!(error instanceof DomainError) || error.reason !== "unavailable") return error;
  return new DomainError("unavailable", {
    message: `The cell "${cell}" is temporarily unavailable. Retry later.`,
    metadata: { cell },
    cause: error,
  });
}

/** The lanes of each cell that have accounts, holds or ledger rows. A cell may have old rows of a lane that it gave up. */
export function lanesInUse(database: ReadCells): Promise<Lane[][]> {
  return Promise.all(database.all.map((_, cell) => sql.lanesInUse(namedCell(database, cell))));
}

/** The lanes that are in use in any cell, in ascending order. Those that no cell owns now are among them. */
export async function allLanesInUse(database: ReadCells): Promise<Lane[]> {
  return [...new Set((await lanesInUse(database)).flat())].sort((a, b) => a - b);
}
