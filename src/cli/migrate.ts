import { MigrationError, migrate } from "../store/schema/migrate.ts";
import { type Define, withExamples } from "./command.ts";
import { CommandFailure, usageFailure } from "./failure.ts";
import { printOut } from "./output.ts";
import { readSettings } from "./target.ts";

export const define: Define = (command) => {
  withExamples(command, ["DATABASE_URL=postgres://owner@db.example/vx vx migrate"]).action(run);
};

async function run(): Promise<void> {
  const { databaseUrl } = readSettings(process.env, ["DATABASE_URL"]);
  if (databaseUrl === undefined) {
    throw usageFailure(
      "DATABASE_URL is not set; set it to the database to migrate ('vx serve' migrates the embedded database)",
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
