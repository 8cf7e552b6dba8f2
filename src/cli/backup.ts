import { existsSync } from "node:fs";
import type { Command } from "commander";
import { openEmbeddedDatabase } from "../app/prepare-database.ts";
import { createBackup } from "../backup/create-backup.ts";
import { type RestoredBackup, restoreBackup } from "../backup/restore-backup.ts";
import { auditStopped, showWithAudit } from "./audit-report.ts";
import { type Define, type JsonOption, withExamples } from "./command.ts";
import { embeddedSettings, explained } from "./embedded-command.ts";
import { CommandFailure } from "./failure.ts";
import { createProgress, printError, printOut, visible } from "./output.ts";
import { type Column, formatTable } from "./print.ts";

export const define: Define = (group) => {
  withExamples(group, ["vx backup create /backups/vx-2030-01-31.tar.zst"]);
  backupCommand(group, "create <file>", "Copy the embedded database into one file, even while the server runs.", [
    "vx backup create /backups/vx-2030-01-31.tar.zst",
  ]).action(create);
  backupCommand(
    group,
    "restore <file>",
    "Restore a backup into the data folder, check it and audit it. The server must be stopped.",
    [
      "VX_DATA_DIR=/srv/vx vx backup restore /backups/vx-2030-01-31.tar.zst",
      "vx backup restore --replace /backups/vx-2030-01-31.tar.zst",
    ],
  )
    .option("--replace", "move an existing database aside, within the data folder")
    .action(restore);
};

function backupCommand(group: Command, usage: string, description: string, examples: readonly string[]) {
  const command = group.command(usage).description(description);
  return withExamples(command.option("--json", "print the result as JSON"), examples);
}

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

async function create(file: string, options: JsonOption): Promise<void> {
  const { dataDir } = embeddedSettings();
  if (!existsSync(dataDir)) throw noDatabase(dataDir);
  const createdAt = new Date();
  const created = await explained(file, "written", async (signal) => {
    const progress = createProgress();
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
      progress.clear();
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
  await printOut(options.json ? `${JSON.stringify(result)}\n` : formatTable(createdColumns, [result]));
}

type RestoreOptions = JsonOption & { readonly replace?: true };

async function restore(file: string, { json, replace }: RestoreOptions): Promise<void> {
  const { dataDir } = embeddedSettings();
  const now = new Date().toISOString().replaceAll(/[:-]|\.\d+/g, "");
  const { restored, audit } = await explained(file, "read", async (signal) => {
    const progress = createProgress();
    let restored: RestoredBackup;
    try {
      restored = await restoreBackup({
        file,
        dataDir,
        replaceAs: replace ? now : undefined,
        signal,
        print: (line) => void tell(line),
        onProgress: (done, inTotal) => progress.show(done / inTotal, `${mebibytes(done)} read`),
      });
    } finally {
      progress.clear();
    }
    await tell(`restored the database to ${restored.clusterDir}, as of ${restored.description.created_at} or later`);
    if (restored.movedTo !== undefined) await tell(`the former database is in ${restored.movedTo}`);
    return { restored, audit: await auditStopped(signal) };
  });
  const { description, clusterDir, movedTo } = restored;
  const result = {
    file,
    database: clusterDir,
    ...(movedTo !== undefined && { replaced_database: movedTo }),
    created_at: description.created_at,
    release: description.release,
  };
  await showWithAudit(json === true, result, audit);
}

function noDatabase(dataDir: string): CommandFailure {
  return new CommandFailure(`there is no folder ${dataDir}; set VX_DATA_DIR to the data folder of the server`);
}

function tell(line: string): Promise<void> {
  return printError(visible(line));
}

function mebibytes(bytes: number): string {
  return `${(bytes / 1_048_576).toFixed(1)} MiB`;
}
