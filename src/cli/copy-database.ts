import { copyEmbeddedDatabase } from "../app/copy-database.ts";
import { databaseUrlProblem } from "../database/driver/endpoints.ts";
import { showWithAudit } from "./audit-report.ts";
import { embeddedSettings, explained } from "./embedded-command.ts";
import { usageFailure } from "./failure.ts";
import { printError, visible } from "./output.ts";
import { JSON_RESULT, required } from "./parameters.ts";
import { command } from "./row.ts";

export const row = command({
  parameters: {
    json: JSON_RESULT,
    to: required("--to <url>", "an empty database of PostgreSQL 15 or newer; the login must own it"),
  },
  examples: ["VX_DATA_DIR=/srv/vx vx copy-database --to postgres://owner@db.example/vx"],
  run: async ({ to, json }) => {
    const problem = databaseUrlProblem(to);
    if (problem !== undefined) throw usageFailure(`--to ${problem}`);
    const { dataDir } = embeddedSettings();
    const print = (line: string) => void printError(visible(line));
    const report = await explained(dataDir, "read", (signal, { show: onProgress }) =>
      copyEmbeddedDatabase({ dataDir, to, signal, print, onProgress }),
    );
    await printError(
      `the database is copied; start the servers with DATABASE_URL. The embedded database in ${dataDir} is unchanged: delete it after you have verified the new database`,
    );
    await showWithAudit(json, { from: dataDir }, report);
  },
});
