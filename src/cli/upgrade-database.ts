import { create } from "@bufbuild/protobuf";
import { AuditResponseSchema } from "../../gen/vx/admin/v1/admin_pb.js";
import { viewReport } from "../api/run-audit.ts";
import { upgradeDatabase } from "../app/copy-database.ts";
import { showWithAudit } from "./audit-report.ts";
import { type Define, type JsonOption, withExamples } from "./command.ts";
import { embeddedSettings, explained } from "./embedded-command.ts";
import { createProgress, printError, visible } from "./output.ts";

export const define: Define = (command) => {
  withExamples(command, ["vx upgrade-database", "vx upgrade-database --from /tmp/postgresql-17"])
    .option("--from <folder>", "the folder into which npm installed the package of the old PostgreSQL")
    .option("--json", "print the result as JSON")
    .action(upgrade);
};

async function upgrade({ from, json }: JsonOption & { readonly from?: string }): Promise<void> {
  const { dataDir } = embeddedSettings();
  const upgraded = await explained(dataDir, "written", async (signal) => {
    const progress = createProgress(process.stderr);
    try {
      return await upgradeDatabase({
        dataDir,
        oldPackages: from,
        signal,
        print: (line) => void printError(visible(line)),
        onProgress: progress.show,
      });
    } finally {
      progress.clear();
    }
  });
  await printError(
    `the database is of PostgreSQL ${upgraded.to} now; that of PostgreSQL ${upgraded.from} is in ${upgraded.movedTo}, delete it after you have verified the new one`,
  );
  const result = {
    from: upgraded.from,
    to: upgraded.to,
    database: upgraded.clusterDir,
    replaced_database: upgraded.movedTo,
  };
  await showWithAudit(json === true, result, create(AuditResponseSchema, viewReport(upgraded.report)));
}
