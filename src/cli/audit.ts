import { type AuditResponse, AuditResponseSchema } from "../../gen/vx/admin/v1/admin_pb.js";
import { auditText, requireConsistent, showAudit } from "./audit-report.ts";
import { type Console, NO_TIMEOUT, withAdmin } from "./client.ts";
import { CommandFailure } from "./failure.ts";
import { createProgress } from "./output.ts";
import { JSON_RESPONSE, option } from "./parameters.ts";
import { printResponse } from "./print.ts";
import { command } from "./row.ts";

export const row = command({
  parameters: {
    json: JSON_RESPONSE,
    archive: option("--archive <folder>", "read the database directly, and also check the files of vx archive in this folder"),
  },
  examples: ["", "--json", "--archive /archives"],
  run: async ({ json, archive }) => {
    if (archive !== undefined) {
      const { auditWithArchives } = await import("./archive.ts");
      return await auditWithArchives(archive, json);
    }
    const response = await withAdmin((_, console) => watchAudit(console));
    await printResponse(json, AuditResponseSchema, response, () => auditText(response));
    requireConsistent(response);
  },
});

async function watchAudit(console: Console): Promise<AuditResponse> {
  const progress = createProgress();
  try {
    for await (const step of console.watchAudit({}, NO_TIMEOUT)) {
      if (step.result) return step.result;
      showAudit(progress, step);
    }
  } finally {
    progress.clear();
  }
  throw new CommandFailure("the server ended the audit without a result");
}
