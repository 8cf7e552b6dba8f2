import { type AuditResponse, AuditResponseSchema } from "../../gen/vx/admin/v1/admin_pb.js";
import { auditText, requireConsistent, showAudit } from "./audit-report.ts";
import { type Console, withAdmin } from "./client.ts";
import { type Define, type JsonOption, withExamples } from "./command.ts";
import { CommandFailure } from "./failure.ts";
import { createProgress } from "./output.ts";
import { show } from "./print.ts";

/** No timeout: the audit reads every row, so its duration has no useful bound. */
const NO_TIMEOUT_MS = 0;

export const define: Define = (command) => {
  withExamples(command, ["vx audit", "vx audit --json", "vx audit --archive /archives"])
    .option("--json", "print the response message as JSON")
    .option("--archive <folder>", "read the database directly, and also check the files of vx archive in this folder")
    .action(audit);
};

async function audit(options: JsonOption & { readonly archive?: string }): Promise<void> {
  if (options.archive !== undefined) {
    const { auditWithArchives } = await import("./archive.ts");
    return await auditWithArchives(options.archive, options.json === true);
  }
  const response = await withAdmin((_, console) => watchAudit(console));
  await show(options, AuditResponseSchema, response, () => auditText(response));
  requireConsistent(response);
}

async function watchAudit(console: Console): Promise<AuditResponse> {
  const progress = createProgress();
  try {
    for await (const step of console.watchAudit({}, { timeoutMs: NO_TIMEOUT_MS })) {
      if (step.result) return step.result;
      showAudit(progress, step);
    }
  } finally {
    progress.clear();
  }
  throw new CommandFailure("the server ended the audit without a result");
}
