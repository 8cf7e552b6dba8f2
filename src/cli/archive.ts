import { openEmbeddedDatabase } from "../app/embedded-database.ts";
import type { Archive } from "../archive/archive-database.ts";
import { ArchiveError } from "../archive/archive-error.ts";
import { type ArchiveProgress, archiveLedger } from "../archive/archive-ledger.ts";
import { monthText, parseMonth } from "../archive/month.ts";
import type { DatabaseAddress } from "../store/driver/connect.ts";
import { type Define, type JsonOption, withExamples } from "./command.ts";
import { explained } from "./embedded-command.ts";
import { CommandFailure, usageFailure } from "./failure.ts";
import { printError, printOut } from "./output.ts";
import { type Column, formatTable } from "./print.ts";
import { createProgress } from "./progress.ts";
import { readSettings } from "./target.ts";
import { visible } from "./visible.ts";

/** This month and the twelve before it. */
const DEFAULT_KEPT_MONTHS = 13;

type Options = JsonOption & { readonly before?: string; readonly keep?: string };

export const define: Define = (command) => {
  withExamples(command, [
    "vx archive /archives",
    "vx archive --keep 25 /archives",
    "DATABASE_URL=postgres://owner@db.example/vx vx archive --before 2030-01 /archives",
  ])
    .argument("<folder>", "the folder of the files; an existing one")
    .option("--before <month>", "archive the months before this one, such as 2030-01")
    .option(
      "--keep <months>",
      `keep so many months in the database, this one included (default: ${DEFAULT_KEPT_MONTHS})`,
    )
    .option("--json", "print the result as JSON")
    .action(archive);
};

const columns: readonly Column<Archive>[] = [
  { title: "FILE", value: ({ file }) => file },
  { title: "LAST MONTH", value: ({ month }) => monthText(month) },
  { title: "ENTRIES", value: ({ entries }) => String(entries), align: "right" },
  { title: "SHA-256", value: ({ sha256 }) => sha256 },
];

async function archive(folder: string, options: Options): Promise<void> {
  const before = firstKeptMonth(options);
  const archived = await explained(folder, "written", async (signal) => {
    const progress = createProgress(process.stderr);
    const database = await openOwnedDatabase();
    try {
      return await archiveLedger({
        address: database.address,
        folder,
        before,
        signal,
        onProgress: (at) => progress.show(shareOf(at), `${at.file}: ${TEXTS[at.step](at)}`),
      });
    } catch (error) {
      if (error instanceof ArchiveError) throw new CommandFailure(error.message);
      throw error;
    } finally {
      progress.clear();
      await database.close();
    }
  });
  if (options.json) {
    const archives = archived.map(({ month, file, sha256, entries }) => ({
      file,
      last_month: monthText(month),
      entries,
      sha256,
    }));
    await printOut(`${JSON.stringify({ archives })}\n`);
  } else if (archived.length > 0) await printOut(formatTable(columns, archived));
  else
    await printOut(`No partition of the ledger ended before ${monthText(before)}; nothing was archived.\n`);
}

const TEXTS: Readonly<Record<ArchiveProgress["step"], (at: ArchiveProgress) => string>> = {
  select: () => "selecting entries",
  write: ({ done }) => `${done} entries written`,
  verify: ({ done }) => `${done} entries read back`,
  remove: () => "removing entries from the database",
};

/** The steps take about as long as each other. */
const STEPS = Object.keys(TEXTS);

function shareOf({ step, done, inTotal }: ArchiveProgress): number {
  return (STEPS.indexOf(step) + (inTotal === 0 ? 1 : done / inTotal)) / STEPS.length;
}

function firstKeptMonth({ before, keep }: Options): number {
  if (before !== undefined && keep !== undefined) throw usageFailure("give either --before or --keep");
  if (before !== undefined) {
    const month = parseMonth(before);
    if (month === undefined) throw usageFailure("--before must be a month such as 2030-01");
    return month;
  }
  const months = keep === undefined ? DEFAULT_KEPT_MONTHS : Number(keep);
  if (!Number.isInteger(months) || months < 1 || months > 1200)
    throw usageFailure("--keep must be a number of months from 1 to 1200");
  const today = new Date();
  return (today.getUTCFullYear() - 1970) * 12 + today.getUTCMonth() + 1 - months;
}

type OwnedDatabase = { readonly address: DatabaseAddress; close(): Promise<void> };

/** With the rights of the owner: the database of DATABASE_URL, or the embedded one, also while a server uses it. */
export async function openOwnedDatabase(): Promise<OwnedDatabase> {
  const { databaseUrl, dataDir, cellsFile } = readSettings(process.env, [
    "DATABASE_URL",
    "VX_DATA_DIR",
    "VX_CELLS",
  ]);
  if (cellsFile !== undefined) {
    throw usageFailure(
      "VX_CELLS is set, and this command is for one database: unset it and set DATABASE_URL to the database of a cell whose schema is vx",
    );
  }
  if (databaseUrl !== undefined)
    return { address: { kind: "url", url: databaseUrl }, close: async () => undefined };
  return await openEmbeddedDatabase(dataDir, "archive", (line) => void printError(visible(line)));
}
