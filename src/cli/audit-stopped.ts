import { create } from "@bufbuild/protobuf";
import { type AuditResponse, AuditResponseSchema } from "../../gen/vx/admin/v1/admin_pb.js";
import { viewReport } from "../api/run-audit.ts";
import { auditEmbeddedDatabase } from "../app/audit-embedded.ts";
import { createLog } from "../telemetry/log.ts";
import { auditText, requireConsistent, showAudit } from "./audit-report.ts";
import { printError, printOut } from "./output.ts";
import { jsonLine } from "./print.ts";
import { createProgress } from "./progress.ts";
import { readSettings } from "./target.ts";
import { visible } from "./visible.ts";

/** Audits the embedded database while no server runs. */
export async function auditStopped(signal: AbortSignal): Promise<AuditResponse> {
  const progress = createProgress(process.stderr);
  try {
    const report = await auditEmbeddedDatabase({
      config: readSettings(process.env, ["VX_DATA_DIR"]),
      log: createLog("error"),
      signal,
      print: (line) => void printError(visible(line)),
      onProgress: (step) => showAudit(progress, step),
    });
    return create(AuditResponseSchema, viewReport(report));
  } finally {
    progress.clear();
  }
}

/** Prints the result of a command and of its audit; fails if the audit found differences. */
export async function showWithAudit(
  isJson: boolean,
  result: Readonly<Record<string, string>>,
  audit: AuditResponse,
): Promise<void> {
  const json = `{${JSON.stringify(result).slice(1, -1)},"audit":${jsonLine(AuditResponseSchema, audit).trim()}}\n`;
  await printOut(isJson ? json : auditText(audit));
  requireConsistent(audit);
}
