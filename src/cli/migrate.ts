import { migrate } from "../store/schema/migrate.ts";
import { migrateCell } from "../store/schema/migrate-cell.ts";
import { MigrationError } from "../store/schema/migration-error.ts";
import { readCellSettings } from "./cell-settings.ts";
import { type Define, withExamples } from "./command.ts";
import { CommandFailure, usageFailure } from "./failure.ts";
import { printOut } from "./output.ts";
import { readSettings } from "./target.ts";

export const define: Define = (command) => {
  withExamples(command, [
    "DATABASE_URL=postgres://owner@db.example/vx vx migrate",
    "VX_CELLS=/etc/vx/cells.yaml vx migrate",
  ]).action(run);
};

async function run(): Promise<void> {
  const { databaseUrl, cellsFile } = readSettings(process.env, ["DATABASE_URL", "VX_CELLS"]);
  if (cellsFile !== undefined) return await migrateCells();
  if (databaseUrl === undefined) {
    throw usageFailure(
      "DATABASE_URL and VX_CELLS are not set; set one of them to the database to migrate ('vx serve' migrates the embedded database)",
    );
  }
  try {
    await migrate({ kind: "url", url: databaseUrl });
  } catch (error) {
    if (error instanceof MigrationError) throw new CommandFailure(error.message);
    throw error;
  }
  await printOut("The schema of the database is up to date.\n");
}

/** A cell that cannot be migrated does not prevent the migration of the others. */
async function migrateCells(): Promise<void> {
  const cells = await readCellSettings();
  const problems: string[] = [];
  for (const cell of cells) {
    try {
      await migrateCell(cell, cells);
      await printOut(`The schema of the cell "${cell.name}" is up to date.\n`);
    } catch (error) {
      if (!(error instanceof MigrationError)) throw error;
      problems.push(`${cell.name}: ${error.message}`);
    }
  }
  if (problems.length > 0) throw new CommandFailure(problems.join("\n"));
}
