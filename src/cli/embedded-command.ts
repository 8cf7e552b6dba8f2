import { BackupError } from "../database/backup/backup-format.ts";
import { EmbeddedPostgresError } from "../database/embedded/error.ts";
import { MigrationError } from "../database/schema/release.ts";
import { fileProblem } from "../domain/read-bytes.ts";
import { CommandFailure, usageFailure } from "./failure.ts";
import { createProgress, type Progress } from "./output.ts";
import { readSettings } from "./target.ts";

/** The settings of the embedded database. Other databases have better tools. */
export function embeddedSettings(): { readonly dataDir: string } {
  const { databaseUrl, dataDir } = readSettings(["DATABASE_URL", "VX_DATA_DIR"]);
  if (databaseUrl === undefined) return { dataDir };
  throw usageFailure(
    "DATABASE_URL is set, and this command is only for the embedded database: copy and upgrade your own PostgreSQL with " +
      "its tools: pg_basebackup and an archive of the write-ahead log, pg_dump, pg_upgrade (docs/backup.md has the commands)",
  );
}

/** Runs work with a progress bar, and turns errors that the operator can act on into one line. */
export async function explained<Result>(
  file: string,
  action: "read" | "written",
  work: (signal: AbortSignal, progress: Progress) => Promise<Result>,
): Promise<Result> {
  const progress = createProgress();
  try {
    return await withInterrupt((signal) => work(signal, progress));
  } catch (error) {
    const isForPeople = [BackupError, EmbeddedPostgresError, MigrationError].some((kind) => error instanceof kind);
    if (isForPeople) throw new CommandFailure((error as Error).message);
    if (error instanceof Error && "errno" in error) throw new CommandFailure(fileProblem(file, error, action));
    throw error;
  } finally {
    progress.clear();
  }
}

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/** Runs work that removes its unfinished results when a signal interrupts it. */
async function withInterrupt<Result>(work: (signal: AbortSignal) => Promise<Result>): Promise<Result> {
  const controller = new AbortController();
  const interrupt = (name: NodeJS.Signals) => controller.abort(new Interrupted(name));
  for (const name of SIGNALS) process.on(name, interrupt);
  try {
    return await work(controller.signal);
  } catch (error) {
    if (controller.signal.aborted) throw controller.signal.reason;
    throw error;
  } finally {
    for (const name of SIGNALS) process.off(name, interrupt);
  }
}

class Interrupted extends CommandFailure {
  constructor(signal: NodeJS.Signals) {
    super(`interrupted by ${signal}`);
  }
}
