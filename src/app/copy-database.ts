import { BackupError } from "../backup/backup-format.ts";
import { copyDatabase, tablesOf } from "../backup/copy-database.ts";
import { upgradeCluster } from "../embedded-postgres/upgrade-cluster.ts";
import type { AuditReport } from "../store/audit.ts";
import { connect, type DatabaseAddress } from "../store/driver/connect.ts";
import { DatabaseLock } from "../store/driver/database-lock.ts";
import { migrate } from "../store/schema/migrate.ts";
import { auditDatabases } from "./audit-embedded.ts";
import { APP_ROLE, openEmbeddedDatabase, socketOf } from "./prepare-database.ts";

type UpgradeOptions = {
  readonly dataDir: string;
  /** Where npm installed the package of the old major version. */
  readonly oldPackages: string | undefined;
  readonly signal: AbortSignal;
  readonly print: (line: string) => void;
  readonly onProgress: (share: number, step: string) => void;
};

type UpgradedDatabase = {
  readonly from: string;
  readonly to: string;
  readonly clusterDir: string;
  /** Where the old database is. */
  readonly movedTo: string;
  readonly report: AuditReport;
};

/** Copies the embedded database to the installed major version of PostgreSQL, with an audit before and after. */
export async function upgradeDatabase(options: UpgradeOptions): Promise<UpgradedDatabase> {
  let report: AuditReport | undefined;
  const upgraded = await upgradeCluster(options, async (from, to) => {
    const source = socketOf(from, "postgres");
    const lock = new DatabaseLock(source, "upgrade-database");
    try {
      // A server of an older release would use the old database.
      if (!(await lock.ensureHeld())) throw new BackupError("a server has started to use the old database");
      report = await migrateAndCopy(source, socketOf(to, "postgres"), options);
    } finally {
      await lock.close();
    }
  });
  return { ...upgraded, report: report as AuditReport };
}

type CopyOptions = {
  readonly dataDir: string;
  /** The login of the owner of an empty database. */
  readonly to: string;
  readonly signal: AbortSignal;
  readonly print: (line: string) => void;
  readonly onProgress: (share: number, step: string) => void;
};

/** Copies the embedded database, which must have no server, to another PostgreSQL, with an audit before and after. */
export async function copyEmbeddedDatabase(options: CopyOptions): Promise<AuditReport> {
  const embedded = await openEmbeddedDatabase(options.dataDir, "copy-database", options.print);
  try {
    if (!embedded.isExclusive) throw new BackupError("a server uses the embedded database; stop it first");
    const target: DatabaseAddress = { kind: "url", url: options.to };
    await migrate(target);
    await requireUnused(target);
    return await migrateAndCopy(embedded.address, target, options);
  } finally {
    await embedded.close();
  }
}

/** What operators and servers change in these is also in other tables. */
const FILLED_BY_MIGRATION = new Set(
  ["functions", "lanes", "migrations", "operator_chains", "plans", "releases", "shared_data"].map(
    (table) => `vx.${table}`,
  ),
);

async function requireUnused(address: DatabaseAddress): Promise<void> {
  const sql = await connect(address, { statementTimeoutMs: 60_000, name: "vx copy" });
  try {
    const [server] =
      await sql`SELECT FROM vx.servers WHERE seen_at > clock_timestamp() - interval '20 seconds' LIMIT 1`;
    if (server) throw new BackupError("a server uses the target; stop it first");
    for (const { name } of await tablesOf(sql)) {
      if (FILLED_BY_MIGRATION.has(name)) continue;
      const [row] = await sql.unsafe(`SELECT FROM ${name} LIMIT 1`);
      if (row) throw new BackupError(`the target has rows in ${name}; use an empty database`);
    }
  } finally {
    await sql.end({ timeout: 5 });
  }
}

async function migrateAndCopy(
  source: DatabaseAddress,
  target: DatabaseAddress,
  { signal, onProgress }: Pick<CopyOptions, "signal" | "onProgress">,
): Promise<AuditReport> {
  const audit = async (address: DatabaseAddress, step: string) =>
    await auditDatabases([{ address, role: APP_ROLE }], {
      signal,
      onProgress: ({ partsDone, parts }) => onProgress(partsDone / parts, step),
    });
  await migrate(source);
  const before = await audit(source, "auditing the database");
  if (before.findings.length > 0)
    throw new BackupError("the audit of the database has findings, so it is not copied; see 'vx audit'");
  await migrate(target);
  const onCopied = (done: number, inTotal: number) => onProgress(done / inTotal, "copying");
  await copyDatabase({ from: source, to: target, signal, onProgress: onCopied });
  const after = await audit(target, "auditing the copy");
  const isSame = after.entries === before.entries && after.balanceMicros === before.balanceMicros;
  if (after.findings.length > 0 || !isSame)
    throw new BackupError("the audit of the copy has findings, so the old database stays in use");
  return after;
}
