import { create } from "@bufbuild/protobuf";
import { AuditResponseSchema } from "../../gen/vx/admin/v1/admin_pb.js";
import { viewReport } from "../api/run-audit.ts";
import { auditDatabases } from "../app/audit-embedded.ts";
import { ArchiveError } from "../archive/archive-error.ts";
import { type ArchivesReport, auditArchives } from "../archive/audit-archives.ts";
import { openOwnedLedgers } from "./archive.ts";
import { auditText, requireConsistent, showAudit } from "./audit-report.ts";
import { explained } from "./embedded-command.ts";
import { CommandFailure } from "./failure.ts";
import { printOut } from "./output.ts";
import { jsonLine } from "./print.ts";
import { createProgress } from "./progress.ts";

/** Audits the database, even while no server runs, and the archived entries that it continues. */
export async function auditWithArchives(folder: string, isJson: boolean): Promise<void> {
  const { audit, archives } = await explained(folder, "read", async (signal) => {
    const progress = createProgress(process.stderr);
    const ledgers = await openOwnedLedgers(folder);
    try {
      // First, so that entries that are archived meanwhile are read in the files.
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
      progress.clear();
      await ledgers.close();
    }
  });
  const response = create(AuditResponseSchema, viewReport(audit));
  const { archives: files, entries } = archives;
  await printOut(
    isJson
      ? `{"archives":{"files":${files},"entries":${entries}},"audit":${jsonLine(AuditResponseSchema, response).trim()}}\n`
      : `${auditText(response)}\n${entries} archived entries in ${files} files\n`,
  );
  requireConsistent(response);
}
