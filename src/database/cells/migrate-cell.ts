import { type Lane, lanesOfText } from "../../domain/lane.ts";
import { connect, type DatabaseAddress } from "../driver/connect.ts";
import type { Engine } from "../driver/endpoints.ts";
import { migrate, type SchemaChanges } from "../schema/migrate.ts";
import { MigrationError } from "../schema/release.ts";
import { distributionOf } from "./citus/distribution.ts";

export type CellToMigrate = {
  readonly name: string;
  readonly address: DatabaseAddress;
  readonly schema: string;
  readonly engine: Engine;
  /** The lanes that the cell owns when it is created. Afterwards its own table decides. */
  readonly lanes: readonly Lane[];
};

const TIMEOUT_MS = 5_000;

/**
 * Creates or migrates a cell. A cell that would begin with lanes is created only after all other cells were asked whether they
 * own them, so that no lane has two owners.
 */
export async function migrateCell(cell: CellToMigrate, all: readonly CellToMigrate[]): Promise<SchemaChanges> {
  const { name, address, schema, engine, lanes } = cell;
  if (lanes.length > 0 && (await ownedLanes(cell)) === undefined) {
    for (const other of all) {
      if (other === cell) continue;
      const owned = await ownedLanes(other).catch((error: unknown) => {
        const reason = `the cell "${name}" is not created, because "${other.name}" cannot be asked which lanes it owns`;
        throw new MigrationError(`${reason}: ${(error as Error).message}`);
      });
      const taken = lanes.find((lane) => owned?.has(lane));
      if (taken !== undefined) {
        throw new MigrationError(
          `the cell "${name}" is not created, because "${other.name}" owns lane ${taken}; create it without lanes and move lanes to it`,
        );
      }
    }
  }
  return await migrate(address, { schema, distribution: distributionOf(engine), lanes });
}

/** The lanes that a cell owns; undefined if it does not exist yet. */
async function ownedLanes({ address, schema }: CellToMigrate): Promise<ReadonlySet<Lane> | undefined> {
  const sql = await connect(address, { statementTimeoutMs: TIMEOUT_MS, name: "vx migrate" });
  try {
    const [found] = await sql`SELECT to_regprocedure(${`${schema}.cell_state()`}) IS NOT NULL AS present`;
    if (found?.present !== true) return undefined;
    const [row] = await sql<{ lanes: string }[]>`SELECT lanes FROM ${sql(schema)}.cell_state()`;
    return new Set(lanesOfText(row?.lanes ?? ""));
  } finally {
    await sql.end({ timeout: 5 });
  }
}
