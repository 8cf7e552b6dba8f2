import * as sql from "../../gen/sql/calls.ts";
import { type AuditProgress, type AuditReport, auditInSteps } from "../audit/store.ts";
import { Database } from "../database/driver/database.ts";
import type { Engine } from "../database/driver/endpoints.ts";
import { type Lane, lanesOfText } from "../domain/lane.ts";
import { setCurrency } from "../domain/money.ts";
import type { Log } from "../telemetry/log.ts";
import { type DatabaseLogin, keepCurrency, serversOf } from "./databases.ts";
import { prepareDatabase } from "./prepare-database.ts";
import type { Config } from "./settings/config.ts";

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
    return await auditDatabases([prepared], options);
  } finally {
    await prepared.stop();
  }
}

/** A database, or one of several cells. Without a role, the audit has the rights of the login. */
type AuditedDatabase = Pick<DatabaseLogin, "address"> &
  Partial<DatabaseLogin> & {
    readonly schema?: string;
    readonly engine?: Engine;
    readonly cell?: string | undefined;
  };

export async function auditDatabases(
  logins: readonly AuditedDatabase[],
  { signal, onProgress }: AuditOptions,
): Promise<AuditReport> {
  const all = logins.map(
    ({ address, role, schema = "vx", engine = "postgresql" }) =>
      new Database(serversOf({ address, schema, engine }), {
        name: "vx audit",
        ...(role !== undefined && { role }),
        schema,
        connections: 1,
        statementTimeoutMs: STATEMENT_TIMEOUT_MS,
        maxStatements: 1,
        maxWaitMs: STATEMENT_TIMEOUT_MS,
      }),
  );
  try {
    const [first] = all;
    if (first) setCurrency(await keepCurrency(first, null));
    const owned = await Promise.all(all.map(ownedLanes));
    const owns = (cell: number, lane: Lane) => owned[cell]?.has(lane) === true;
    const nameOf = (cell: number) => logins[cell]?.cell ?? "";
    const steps = auditInSteps({ all, owns, nameOf }, signal);
    for (;;) {
      const step = await steps.next();
      if (step.done) return step.value.report;
      onProgress(step.value);
    }
  } finally {
    await Promise.all(all.map((database) => database.close()));
  }
}

async function ownedLanes(database: Database): Promise<ReadonlySet<Lane>> {
  const [row] = await sql.cellState(database);
  return new Set(lanesOfText(row?.lanes ?? ""));
}
