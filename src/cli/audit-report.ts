import { create } from "@bufbuild/protobuf";
import { AuditFindingSchema, type AuditResponse, AuditResponseSchema } from "../../gen/vx/admin/v1/admin_pb.js";
import { auditEmbeddedDatabase } from "../app/audit-embedded.ts";
import { viewReport } from "../audit/run-audit.ts";
import type { AuditProgress, AuditReport } from "../audit/store.ts";
import { createLog } from "../telemetry/log.ts";
import { CommandFailure } from "./failure.ts";
import { type Progress, printError, printOut, visible } from "./output.ts";
import { columnsOf, formatTable, jsonLine } from "./print.ts";
import { readSettings } from "./target.ts";

const columns = columnsOf(
  AuditResponseSchema,
  "accounts, entries, keys, balanceMicros, operatorEvents, consistent",
  { "in the table of findings": "findings" },
  { consistent: (consistent) => (consistent ? "yes" : "NO") },
);
const findingColumns = columnsOf(AuditFindingSchema, "accountId, rule, detail", {});

export function requireConsistent(response: AuditResponse): void {
  if (!response.consistent) {
    throw new CommandFailure("the stored values differ from the ledger entries or from the log; see the findings");
  }
}

export function auditText(response: AuditResponse): string {
  const { findings } = response;
  const details = findings.length === 0 ? "" : `\n${formatTable(findingColumns, findings)}`;
  return formatTable(columns, [response]) + details;
}

export function showAudit(progress: Progress, { partsDone, parts, entries }: AuditProgress): void {
  progress.show(partsDone / parts, `${entries} ledger entries audited`);
}

/** Audits the embedded database while no server runs. */
export function auditStopped(signal: AbortSignal, progress: Progress): Promise<AuditReport> {
  return auditEmbeddedDatabase({
    config: readSettings(["VX_DATA_DIR"]),
    log: createLog("error"),
    signal,
    print: (line) => void printError(visible(line)),
    onProgress: (step) => showAudit(progress, step),
  });
}

/** Prints the result of a command and of its audit, and with the latter `more` text; fails if the audit found differences. */
export async function showWithAudit(isJson: boolean, result: object, report: AuditReport, more = ""): Promise<void> {
  const response = create(AuditResponseSchema, viewReport(report));
  const json = `{${JSON.stringify(result).slice(1, -1)},"audit":${jsonLine(AuditResponseSchema, response).trim()}}\n`;
  await printOut(isJson ? json : auditText(response) + more);
  requireConsistent(response);
}
