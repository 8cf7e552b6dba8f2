import type { AuditReport } from "../audit/store.ts";
import { BackupError } from "../database/backup/backup-format.ts";
import { copyDatabase, tablesOf } from "../database/backup/copy-database.ts";
import { connect, type DatabaseAddress } from "../database/driver/connect.ts";
import { migrate } from "../database/schema/migrate.ts";
import { auditDatabases } from "./audit-embedded.ts";
import { APP_ROLE, openEmbeddedDatabase } from "./prepare-database.ts";

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
  const { signal, onProgress } = options;
  const audit = async (address: DatabaseAddress, step: string) =>
    await auditDatabases([{ address, role: APP_ROLE }], {
      signal,
      onProgress: ({ partsDone, parts }) => onProgress(partsDone / parts, step),
    });
  const embedded = await openEmbeddedDatabase(options.dataDir, "copy-database", options.print);
  try {
    if (!embedded.isExclusive) throw new BackupError("a server uses the embedded database; stop it first");
    const source = embedded.address;
    const target: DatabaseAddress = { kind: "url", url: options.to };
    await migrate(target);
    await requireUnused(target);
    await migrate(source);
    const before = await audit(source, "auditing the database");
    if (before.findings.length > 0)
      throw new BackupError("the audit of the database has findings, so it is not copied; see 'vx audit'");
    const onCopied = (done: number, inTotal: number) => onProgress(done / inTotal, "copying");
    await copyDatabase({ from: source, to: target, signal, onProgress: onCopied });
    const after = await audit(target, "auditing the copy");
    const isSame = after.entries === before.entries && after.balanceMicros === before.balanceMicros;
    if (after.findings.length > 0 || !isSame) throw new BackupError("the audit of the copy has findings: do not use the copy");
    return after;
  } finally {
    await embedded.close();
  }
}

/** What operators and servers change in these is also in other tables. */
const FILLED_BY_MIGRATION = new Set(
  ["audit_state", "currency", "functions", "lanes", "migrations", "operator_chains", "plans", "releases", "shared_data"].map(
    (table) => `vx.${table}`,
  ),
);

async function requireUnused(address: DatabaseAddress): Promise<void> {
  const sql = await connect(address, { statementTimeoutMs: 60_000, name: "vx copy" });
  try {
    const [server] = await sql`SELECT FROM vx.servers WHERE seen_at > clock_timestamp() - interval '20 seconds' LIMIT 1`;
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
