import { BackupError } from "../backup/backup-error.ts";
import { copyDatabase } from "../backup/copy-database.ts";
import { type ClusterLogin, upgradeCluster } from "../embedded-postgres/upgrade-cluster.ts";
import type { AuditReport } from "../store/audit.ts";
import { DatabaseLock } from "../store/driver/database-lock.ts";
import { migrate } from "../store/schema/migrate.ts";
import { auditDatabases } from "./audit-embedded.ts";
import { socketOf } from "./embedded-database.ts";
import { APP_ROLE } from "./prepare-database.ts";

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
  const { signal, onProgress } = options;
  let report: AuditReport | undefined;
  const auditOf = async (login: ClusterLogin, step: string) =>
    await auditDatabases([{ address: socketOf(login, "postgres"), role: APP_ROLE }], {
      signal,
      onProgress: ({ partsDone, parts }) => onProgress(partsDone / parts, step),
    });
  const upgraded = await upgradeCluster(options, async (from, to) => {
    const [source, target] = [socketOf(from, "postgres"), socketOf(to, "postgres")];
    const lock = new DatabaseLock(source, "upgrade-database");
    try {
      // A server of an older release would use the old database.
      if (!(await lock.ensureHeld())) throw new BackupError("a server has started to use the old database");
      await migrate(source);
      const before = await auditOf(from, "auditing the old database");
      if (before.findings.length > 0)
        throw new BackupError(
          "the audit of the old database has findings, so it is not copied; run 'vx audit' with the old release",
        );
      await migrate(target);
      const onCopied = (done: number, inTotal: number) => onProgress(done / inTotal, "copying");
      await copyDatabase({ from: source, to: target, signal, onProgress: onCopied });
      report = await auditOf(to, "auditing the new database");
      if (report.findings.length > 0 || report.entries !== before.entries)
        throw new BackupError("the audit of the copy has findings, so the old database stays in use");
    } finally {
      await lock.close();
    }
  });
  return { ...upgraded, report: report as AuditReport };
}
