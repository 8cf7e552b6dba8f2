import { existsSync } from "node:fs";
import { openEmbeddedDatabase } from "../app/prepare-database.ts";
import { createBackup } from "../database/backup/create-backup.ts";
import { restoreBackup } from "../database/backup/restore-backup.ts";
import { auditStopped, showWithAudit } from "./audit-report.ts";
import { embeddedSettings, explained } from "./embedded-command.ts";
import { CommandFailure } from "./failure.ts";
import { printError, printResult, visible } from "./output.ts";
import { argument, flag, JSON_RESULT, type Values } from "./parameters.ts";
import { type Column, formatTable, type JsonOption } from "./print.ts";
import { command, noun } from "./row.ts";

const FILE = argument("<file>", "");
const restoring = {
  file: FILE,
  json: JSON_RESULT,
  replace: flag("--replace", "move an existing database aside, within the data folder"),
};

export const row = noun(["create /backups/vx-2030-01-31.tar.zst"], {
  create: command({
    about: "Copy the embedded database into one file, even while the server runs.",
    parameters: { file: FILE, json: JSON_RESULT },
    examples: ["/backups/vx-2030-01-31.tar.zst"],
    run: create,
  }),
  restore: command({
    about: "Restore a backup into the data folder, check it and audit it. The server must be stopped.",
    parameters: restoring,
    examples: [
      "VX_DATA_DIR=/srv/vx vx backup restore /backups/vx-2030-01-31.tar.zst",
      "--replace /backups/vx-2030-01-31.tar.zst",
    ],
    run: restore,
  }),
});

type Created = {
  readonly file: string;
  readonly bytes: number;
  readonly database_bytes: number;
  readonly wal_segments: number;
  readonly created_at: string;
};

const createdColumns: readonly Column<Created>[] = [
  { title: "FILE", value: ({ file }) => file },
  { title: "SIZE", value: ({ bytes }) => mebibytes(bytes), align: "right" },
  { title: "DATABASE", value: ({ database_bytes }) => mebibytes(database_bytes), align: "right" },
  { title: "CREATED", value: ({ created_at }) => created_at },
];

async function create({ file, json }: JsonOption & { readonly file: string }): Promise<void> {
  const { dataDir } = embeddedSettings();
  if (!existsSync(dataDir))
    throw new CommandFailure(`there is no folder ${dataDir}; set VX_DATA_DIR to the data folder of the server`);
  const createdAt = new Date();
  const created = await explained(file, "written", async (signal, progress) => {
    const database = await openEmbeddedDatabase(dataDir, "backup", (line) => void tell(line));
    try {
      return await createBackup({
        ...database,
        file,
        createdAt,
        signal,
        onProgress: (done, inTotal) => progress.show(done / inTotal, `${mebibytes(done)} copied`),
      });
    } finally {
      await database.close();
    }
  });
  const { bytes, databaseBytes, walSegments } = created;
  const result: Created = {
    file,
    bytes,
    database_bytes: databaseBytes,
    wal_segments: walSegments,
    created_at: createdAt.toISOString(),
  };
  await printResult(json, result, formatTable(createdColumns, [result]));
}

async function restore({ file, json, replace }: Values<typeof restoring>): Promise<void> {
  const { dataDir } = embeddedSettings();
  const now = new Date().toISOString().replaceAll(/[:-]|\.\d+/g, "");
  const { restored, audit } = await explained(file, "read", async (signal, progress) => {
    const restored = await restoreBackup({
      file,
      dataDir,
      replaceAs: replace ? now : undefined,
      signal,
      print: (line) => void tell(line),
      onProgress: (done, inTotal) => progress.show(done / inTotal, `${mebibytes(done)} read`),
    });
    progress.clear();
    await tell(`restored the database to ${restored.clusterDir}, as of ${restored.description.created_at} or later`);
    if (restored.movedTo !== undefined) await tell(`the former database is in ${restored.movedTo}`);
    return { restored, audit: await auditStopped(signal, progress) };
  });
  const { description, clusterDir, movedTo } = restored;
  const result = {
    file,
    database: clusterDir,
    ...(movedTo !== undefined && { replaced_database: movedTo }),
    created_at: description.created_at,
    release: description.release,
  };
  await showWithAudit(json, result, audit);
}

function tell(line: string): Promise<void> {
  return printError(visible(line));
}

function mebibytes(bytes: number): string {
  return `${(bytes / 1_048_576).toFixed(1)} MiB`;
}
