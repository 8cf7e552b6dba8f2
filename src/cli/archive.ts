import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { auditDatabases } from "../app/audit-embedded.ts";
import { openEmbeddedDatabase } from "../app/prepare-database.ts";
import { type ArchivesReport, auditArchives } from "../audit/audit-archives.ts";
import { type Archive, ArchiveError, type LedgerPlace } from "../database/archive/archive-database.ts";
import { type ArchiveProgress, archiveLedger } from "../database/archive/archive-ledger.ts";
import type { Engine } from "../database/driver/endpoints.ts";
import { monthText, parseMonth } from "../domain/periods.ts";
import { showAudit, showWithAudit } from "./audit-report.ts";
import { explained } from "./embedded-command.ts";
import { CommandFailure, usageFailure } from "./failure.ts";
import { printError, printResult, visible } from "./output.ts";
import { argument, JSON_RESULT, option, type Values } from "./parameters.ts";
import { type Column, formatTable } from "./print.ts";
import { command } from "./row.ts";
import { readCellSettings, readSettings } from "./target.ts";

/** This month and the twelve before it. */
const DEFAULT_KEPT_MONTHS = 13;

const archiving = {
  folder: argument("<folder>", "the folder of the files; an existing one. Each cell of VX_CELLS has a folder in it"),
  before: option("--before <month>", "archive the months before this one, such as 2030-01"),
  keep: option(
    "--keep <months>",
    `the number of months to keep in the database, including the current one (default: ${DEFAULT_KEPT_MONTHS})`,
  ),
  json: JSON_RESULT,
};

export const row = command({
  parameters: archiving,
  examples: [
    "/archives",
    "--keep 25 /archives",
    "DATABASE_URL=postgres://owner@db.example/vx vx archive --before 2030-01 /archives",
    "VX_CELLS=owners.yaml vx archive /archives",
  ],
  run: archiveMonths,
});

type CellArchive = Archive & Pick<LedgerPlace, "cell">;

const columns: readonly Column<CellArchive>[] = [
  { title: "FILE", value: ({ cell, file }) => (cell === undefined ? file : join(cell, file)) },
  { title: "LAST MONTH", value: ({ month }) => monthText(month) },
  { title: "ENTRIES", value: ({ entries }) => String(entries), align: "right" },
  { title: "SHA-256", value: ({ sha256 }) => sha256 },
];

async function archiveMonths({ folder, json, ...months }: Values<typeof archiving>): Promise<void> {
  const before = firstKeptMonth(months);
  const problems: string[] = [];
  const archived = await explained(folder, "written", async (signal, progress) => {
    const ledgers = await openOwnedLedgers(folder);
    const all: CellArchive[] = [];
    try {
      for (const { folder: files, ...place } of ledgers.all) {
        const prefix = place.cell === undefined ? "" : `${place.cell}: `;
        try {
          if (place.engine === "citus") throw new ArchiveError("the cell is on Citus, where entries cannot be archived");
          if (place.cell !== undefined) await makeFolder(files);
          const ofCell = await archiveLedger({
            place,
            folder: files,
            before,
            signal,
            onProgress: (at) => progress.show(shareOf(at), `${prefix}${at.file}: ${TEXTS[at.step](at)}`),
          });
          all.push(...ofCell.map((one) => ({ ...one, cell: place.cell })));
        } catch (error) {
          // A cell that cannot be archived does not prevent the archiving of the others.
          if (!(error instanceof ArchiveError)) throw error;
          problems.push(`${prefix}${error.message}`);
        }
      }
      return all;
    } finally {
      await ledgers.close();
    }
  });
  const none = `No partition of the ledger ended before ${monthText(before)}; nothing was archived.\n`;
  const text = archived.length > 0 ? formatTable(columns, archived) : problems.length === 0 ? none : "";
  await printResult(json, { archives: archived.map(viewArchive) }, text);
  if (problems.length > 0) throw new CommandFailure(problems.join("\n"));
}

async function makeFolder(path: string): Promise<void> {
  await mkdir(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "EEXIST") throw error;
  });
}

const viewArchive = ({ cell, month, file, sha256, entries }: CellArchive) => ({
  ...(cell !== undefined && { cell }),
  file,
  last_month: monthText(month),
  entries,
  sha256,
});

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

function firstKeptMonth({ before, keep }: Pick<Values<typeof archiving>, "before" | "keep">): number {
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

type OwnedLedgers = {
  readonly all: readonly (LedgerPlace & { readonly engine: Engine; readonly folder: string })[];
  close(): Promise<void>;
};

/**
 * With the rights of the owner: the cells of VX_CELLS, each with a folder of its own in this one, the database of
 * DATABASE_URL, or the embedded one, even while a server uses it.
 */
async function openOwnedLedgers(folder: string): Promise<OwnedLedgers> {
  const { databaseUrl, dataDir, cellsFile } = readSettings(["DATABASE_URL", "VX_DATA_DIR", "VX_CELLS"]);
  const close = async () => undefined;
  if (cellsFile !== undefined) {
    const cells = await readCellSettings();
    const all = cells.map(({ name, ...cell }) => ({ ...cell, cell: name, folder: join(folder, name) }));
    return { all, close };
  }
  const only = { schema: "vx", engine: "postgresql", cell: undefined, folder } as const;
  if (databaseUrl !== undefined) return { all: [{ ...only, address: { kind: "url", url: databaseUrl } }], close };
  const embedded = await openEmbeddedDatabase(dataDir, "archive", (line) => void printError(visible(line)));
  return { all: [{ ...only, address: embedded.address }], close: () => embedded.close() };
}

/** Audits the database, even while no server runs, and the archived entries that it continues. */
export async function auditWithArchives(folder: string, isJson: boolean): Promise<void> {
  const { audit, archives } = await explained(folder, "read", async (signal, progress) => {
    const ledgers = await openOwnedLedgers(folder);
    try {
      // The database comes first, so that entries that are archived meanwhile are read in the files.
      const report = await auditDatabases(ledgers.all, {
        signal,
        onProgress: (step) => showAudit(progress, step),
      });
      const archives: ArchivesReport = { archives: 0, entries: 0, findings: [] };
      for (const { folder: files, ...place } of ledgers.all) {
        const ofCell = await auditArchives(place, files, signal, (done, inTotal) =>
          progress.show(done / inTotal, `${archives.entries + done} archived ledger entries audited`),
        );
        archives.archives += ofCell.archives;
        archives.entries += ofCell.entries;
        archives.findings.push(...ofCell.findings);
      }
      return { audit: { ...report, findings: [...archives.findings, ...report.findings] }, archives };
    } catch (error) {
      if (error instanceof ArchiveError) throw new CommandFailure(error.message);
      throw error;
    } finally {
      await ledgers.close();
    }
  });
  const { archives: files, entries } = archives;
  const text = `\n${entries} archived entries in ${files} files\n`;
  await showWithAudit(isJson, { archives: { files, entries } }, audit, text);
}
