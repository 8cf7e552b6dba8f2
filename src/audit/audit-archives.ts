import { join } from "node:path";
import { ArchiveDatabase, ArchiveError, type LedgerPlace } from "../database/archive/archive-database.ts";
import { verifyEntries } from "../database/archive/verify-entries.ts";
import type { AuditFinding } from "./store.ts";

export type ArchivesReport = {
  archives: number;
  entries: number;
  readonly findings: AuditFinding[];
};

/**
 * Reads the files of all archives and compares them with what the database has of each account. With the audit of the database,
 * which continues there, it covers the ledger from the first entry on.
 */
export async function auditArchives(
  place: LedgerPlace,
  folder: string,
  signal: AbortSignal,
  onProgress: (entriesDone: number, entriesInTotal: number) => void,
): Promise<ArchivesReport> {
  const database = await ArchiveDatabase.open(place);
  try {
    const archives = (await database.archives()).filter(({ removedAt }) => removedAt !== undefined);
    const inTotal = archives.reduce((sum, { entries }) => sum + entries, 0);
    const findings: AuditFinding[] = [];
    let entries = 0;
    for (const archive of archives) {
      const report = (done: number) => {
        signal.throwIfAborted();
        onProgress(entries + done, inTotal);
      };
      const detail = await problemOf(database, folder, archive, report);
      if (detail !== undefined) findings.push({ account_id: "", rule: "archive_matches_ledger", detail });
      entries += archive.entries;
    }
    return { archives: archives.length, entries, findings };
  } finally {
    await database.close();
  }
}

async function problemOf(
  database: ArchiveDatabase,
  folder: string,
  { month, file, sha256, entries }: { month: number; file: string; sha256: string; entries: number },
  onRead: (entries: number) => void,
): Promise<string | undefined> {
  const path = join(folder, file);
  try {
    const verified = await verifyEntries(path, database.heads(month), onRead);
    if (verified.sha256 !== sha256) return `${path} is not the file that was archived: its SHA-256 hash differs`;
    if (verified.entries !== entries) return `${path} has ${verified.entries} entries instead of ${entries}`;
    return undefined;
  } catch (error) {
    if (error instanceof ArchiveError) return error.message;
    throw error;
  }
}
