import { type Lane, lanesOfText } from "../domain/lane.ts";
import { Database } from "../store/driver/database.ts";
import type { CellToMigrate } from "../store/schema/migrate-cell.ts";
import { APP_ROLE } from "./prepare-database.ts";

const STATEMENT_TIMEOUT_MS = 5_000;

type CellState = {
  readonly name: string;
  readonly schema: string;
  readonly lanes: readonly Lane[];
  /** Why the cell cannot be used; undefined if it can. */
  readonly problem: string | undefined;
};

/** Asks each cell which lanes it owns. */
export async function readCellStates(cells: readonly CellToMigrate[]): Promise<readonly CellState[]> {
  return await Promise.all(cells.map(readState));
}

async function readState({ name, address, schema }: CellToMigrate): Promise<CellState> {
  const database = new Database(address, {
    name: "vx cells",
    role: APP_ROLE,
    schema,
    connections: 1,
    statementTimeoutMs: STATEMENT_TIMEOUT_MS,
    maxStatements: 1,
    maxWaitMs: STATEMENT_TIMEOUT_MS,
  });
  try {
    const [row] = await database.call<{ lanes: string; name: string | null }>("cell_state");
    const stored = row?.name ?? name;
    if (stored !== name) return { name, schema, lanes: [], problem: `the database is the cell "${stored}"` };
    return { name, schema, lanes: lanesOfText(row?.lanes ?? ""), problem: undefined };
  } catch (error) {
    const { message, cause } = error as Error;
    return { name, schema, lanes: [], problem: cause instanceof Error ? cause.message : message };
  } finally {
    await database.close();
  }
}
