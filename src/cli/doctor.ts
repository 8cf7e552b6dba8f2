import { examine } from "../app/doctor.ts";
import type { Finding } from "../app/finding.ts";
import { openEmbeddedDatabase } from "../app/prepare-database.ts";
import { type Config, readConfig } from "../app/settings/config.ts";
import { explained } from "./embedded-command.ts";
import { EXIT_FAILED } from "./failure.ts";
import { printError, printResult, visible } from "./output.ts";
import { JSON_RESULT } from "./parameters.ts";
import { command } from "./row.ts";
import { shell } from "./shell.ts";
import { orUsageFailure } from "./target.ts";

export const row = command({
  parameters: { json: JSON_RESULT },
  examples: ["", "DATABASE_URL=postgres://owner@db.example/vx vx doctor --json"],
  run: async ({ json }) => {
    const config = orUsageFailure(() => readConfig(shell.env));
    const isEmbedded = config.databaseUrl === undefined && config.cellsFile === undefined;
    const findings = await (isEmbedded ? examineEmbedded(config) : examine({ config, env: shell.env, embedded: undefined }));
    await printResult(json, { findings }, findings.map(lineOf).join(""));
    if (findings.some(({ status }) => status === "problem")) shell.exitCode = EXIT_FAILED;
  },
});

/** Uses the database of a running server, or starts it for the checks. */
async function examineEmbedded(config: Config): Promise<Finding[]> {
  return await explained(config.dataDir, "read", async () => {
    const database = await openEmbeddedDatabase(config.dataDir, "doctor", (line) => void printError(line));
    try {
      return await examine({ config, env: shell.env, embedded: database.address });
    } finally {
      await database.close();
    }
  });
}

function lineOf({ check, status, message, advice }: Finding): string {
  const line = `${status.padEnd(7)}  ${visible(check)}: ${visible(message)}\n`;
  return advice === undefined ? line : `${line}         ${visible(advice)}\n`;
}
