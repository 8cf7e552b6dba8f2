import { type AuditProgress, type AuditReport, auditInSteps } from "../store/audit.ts";
import { Database } from "../store/driver/database.ts";
import type { Log } from "../telemetry/log.ts";
import type { Config } from "./config.ts";
import { prepareDatabase } from "./prepare-database.ts";

const STATEMENT_TIMEOUT_MS = 60_000;

type AuditOptions = {
  readonly config: Config;
  readonly log: Log;
  readonly signal: AbortSignal;
  readonly print: (line: string) => void;
  readonly onProgress: (progress: AuditProgress) => void;
};

/** Starts the embedded database as the server does, with its schema migrated, audits it and stops it. */
export async function auditEmbeddedDatabase(options: AuditOptions): Promise<AuditReport> {
  const { config, log, signal, print, onProgress } = options;
  const prepared = await prepareDatabase({ config, log, print, onWait: () => undefined });
  try {
    const database = new Database(prepared.address, {
      name: "vx audit",
      role: prepared.role,
      connections: 1,
      statementTimeoutMs: STATEMENT_TIMEOUT_MS,
      maxStatements: 1,
      maxWaitMs: STATEMENT_TIMEOUT_MS,
    });
    try {
      const steps = auditInSteps(database, signal);
      for (;;) {
        const step = await steps.next();
        if (step.done) return step.value.report;
        onProgress(step.value);
      }
    } finally {
      await database.close();
    }
  } finally {
    await prepared.stop();
  }
}
