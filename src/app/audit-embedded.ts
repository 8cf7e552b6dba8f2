import { type AuditProgress, type AuditReport, auditInSteps } from "../store/audit.ts";
import { Database } from "../store/driver/database.ts";
import type { Log } from "../telemetry/log.ts";
import type { Config } from "./config.ts";
import type { DatabaseLogin } from "./databases.ts";
import { prepareDatabase } from "./prepare-database.ts";

const STATEMENT_TIMEOUT_MS = 60_000;

type AuditOptions = {
  readonly signal: AbortSignal;
  readonly onProgress: (progress: AuditProgress) => void;
};

type EmbeddedAuditOptions = AuditOptions & {
  readonly config: Config;
  readonly log: Log;
  readonly print: (line: string) => void;
};

/** Starts the embedded database as the server does, with its schema migrated, audits it and stops it. */
export async function auditEmbeddedDatabase(options: EmbeddedAuditOptions): Promise<AuditReport> {
  const { config, log, print } = options;
  const prepared = await prepareDatabase({ config, log, print, onWait: () => undefined });
  try {
    return await auditDatabase(prepared, options);
  } finally {
    await prepared.stop();
  }
}

export async function auditDatabase(
  { address, role }: DatabaseLogin,
  { signal, onProgress }: AuditOptions,
): Promise<AuditReport> {
  const database = new Database(address, {
    name: "vx audit",
    role,
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
}
