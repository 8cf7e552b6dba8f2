import { create } from "@bufbuild/protobuf";
import { AuditResponseSchema } from "../../gen/vx/admin/v1/admin_pb.js";
import { viewReport } from "../api/run-audit.ts";
import { auditDatabase } from "../app/audit-embedded.ts";
import { APP_ROLE } from "../app/prepare-database.ts";
import { auditArchives } from "../archive/audit-archives.ts";
import { openOwnedDatabase } from "./archive.ts";
import { auditText, requireConsistent } from "./audit-report.ts";
import { explained } from "./embedded-command.ts";
import { printOut } from "./output.ts";
import { jsonLine } from "./print.ts";
import { createProgress } from "./progress.ts";

/** Audits the database, also while no server runs, and the archived entries that it continues. */
export async function auditWithArchives(folder: string, isJson: boolean): Promise<void> {
  const { audit, archives } = await explained(folder, "read", async (signal) => {
    const progress = createProgress(process.stderr);
    const database = await openOwnedDatabase();
    try {
      // First, so that entries that are archived meanwhile are read in the files.
      const report = await auditDatabase(
        { address: database.address, role: APP_ROLE },
        {
          signal,
          onProgress: ({ partsDone, parts, entries }) =>
            progress.show(partsDone / parts, `${entries} ledger entries audited`),
        },
      );
      const archives = await auditArchives(database.address, folder, signal, (done, inTotal) =>
        progress.show(done / inTotal, `${done} archived ledger entries audited`),
      );
      return { audit: { ...report, findings: [...archives.findings, ...report.findings] }, archives };
    } finally {
      progress.clear();
      await database.close();
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
