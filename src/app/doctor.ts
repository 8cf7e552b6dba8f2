import { X509Certificate } from "node:crypto";
import { statfs } from "node:fs/promises";
import { distributionOf } from "../database/cells/citus/distribution.ts";
import { connect, type DatabaseAddress, type Sql } from "../database/driver/connect.ts";
import type { Engine } from "../database/driver/endpoints.ts";
import { isEmpty, readPending } from "../database/schema/migrate.ts";
import type { Model } from "../domain/model.ts";
import { ModelsError } from "../models/problems.ts";
import { readModels } from "../models/read-models.ts";
import { checkPayments } from "./doctor-payments.ts";
import type { Finding } from "./finding.ts";
import { APP_ROLE } from "./prepare-database.ts";
import { readCells } from "./settings/cells.ts";
import { type Config, serverConnections } from "./settings/config.ts";
import type { TlsFiles } from "./settings/tls.ts";

const GIB = 1_073_741_824;
const MIN_FREE_BYTES = GIB;
const FEW_FREE_BYTES = 5 * GIB;
const DAY_MS = 86_400_000;
const FEW_DAYS = 14;
const UPSTREAM_TIMEOUT_MS = 5_000;

type DoctorOptions = {
  readonly config: Config;
  readonly env: NodeJS.ProcessEnv;
  /** The login to the embedded database; undefined for other databases. */
  readonly embedded: DatabaseAddress | undefined;
};

/** Checks everything that the server needs. Changes nothing and calls no model. */
export async function examine({ config, env, embedded }: DoctorOptions): Promise<Finding[]> {
  const models = await checkModels(config.modelsFile, env);
  const groups = await Promise.all([
    ...(await databasesOf(config, embedded)).map(async (database) => await checkDatabase(database, config)),
    embedded ? checkDisk(config.dataDir) : [],
    checkUpstreams(models.models),
    checkCertificates(config),
    checkPayments(config),
  ]);
  return [...groups.flat(), ...models.findings];
}

/** What a start can check without delay: the clock, connections and partitions of the database, and certificates. */
export async function examineAtStart({ config, embedded }: Omit<DoctorOptions, "env">): Promise<Finding[]> {
  const databases = await databasesOf(config, embedded);
  const groups = databases.map((database) => checkDatabase(database, config, { isStart: true }));
  return [...(await Promise.all(groups)).flat(), ...checkCertificates(config)];
}

async function databasesOf(config: Config, embedded: DatabaseAddress | undefined): Promise<readonly DatabaseToCheck[]> {
  const cells = await readCells(config.cellsFile);
  if (cells) return cells.map((cell) => ({ ...cell, isEmbedded: false }));
  const only = { schema: "vx", engine: "postgresql" } as const;
  if (embedded) return [{ ...only, address: embedded, isEmbedded: true }];
  const url = config.databaseUrl;
  return url === undefined ? [] : [{ ...only, address: { kind: "url", url }, isEmbedded: false }];
}

async function checkDisk(dataDir: string): Promise<Finding[]> {
  const check = "disk";
  const { bavail, bsize } = await statfs(dataDir);
  const free = bavail * bsize;
  const message = `${(free / GIB).toFixed(1)} GiB free for ${dataDir}`;
  if (free >= FEW_FREE_BYTES) return [{ check, status: "ok", message }];
  const advice = "free space on this file system, or move old months away with 'vx archive'; calls fail when it is full";
  return [{ check, status: free < MIN_FREE_BYTES ? "problem" : "warning", message, advice }];
}

async function checkModels(path: string | undefined, env: NodeJS.ProcessEnv) {
  const check = "models file";
  try {
    const models = await readModels(path, env);
    const message = path === undefined ? "VX_MODELS is not set: the sandbox models" : `${models.length} models`;
    return { models, findings: [{ check, status: "ok", message } satisfies Finding] };
  } catch (error) {
    if (!(error instanceof ModelsError)) throw error;
    const advice = `correct ${path}; docs/models.md describes it`;
    const finding: Finding = {
      check,
      status: "problem",
      message: error.message.replaceAll("\n", "; "),
      advice,
    };
    return { models: [], findings: [finding] };
  }
}

/** Connects to each upstream without its key: any response shows that it can be reached. */
async function checkUpstreams(models: readonly Model[]): Promise<Finding[]> {
  const urls = models.flatMap(({ upstreams }) =>
    upstreams.flatMap((upstream) => (upstream.kind === "sandbox" ? [] : [upstream.baseUrl])),
  );
  return await Promise.all([...new Set(urls)].map(checkUpstream));
}

async function checkUpstream(url: string): Promise<Finding> {
  const check = "upstream";
  const { origin, host } = new URL(url);
  try {
    const signal = AbortSignal.timeout(UPSTREAM_TIMEOUT_MS);
    const { status, body } = await fetch(origin, { method: "HEAD", redirect: "manual", signal });
    await body?.cancel();
    const message = `${host} answers (HTTP ${status})`;
    if (status < 500) return { check, status: "ok", message };
    return { check, status: "warning", message, advice: "look at the log of the upstream" };
  } catch (error) {
    const { cause, message } = error as Error;
    const reason = cause instanceof Error ? cause.message || (cause as { code?: string }).code : message;
    const advice = "check base_url in the models file, DNS, the firewall and the certificate of the upstream";
    return { check, status: "problem", message: `${host} cannot be reached: ${reason}`, advice };
  }
}

function checkCertificates({ tls, adminTls }: Config): Finding[] {
  return [
    ...(tls ? [checkCertificate("certificate", "VX_TLS_CERT", tls)] : []),
    ...(adminTls ? [checkCertificate("operator certificate", "VX_ADMIN_TLS_CERT", adminTls)] : []),
  ];
}

function checkCertificate(check: string, setting: string, files: TlsFiles): Finding {
  const { validFromDate, validToDate } = new X509Certificate(files.read().cert);
  const days = (validToDate.getTime() - Date.now()) / DAY_MS;
  const until = validToDate.toISOString().slice(0, 10);
  const advice = `replace the files of ${setting} and send SIGHUP to the server`;
  if (validFromDate.getTime() > Date.now()) {
    const from = validFromDate.toISOString();
    return { check, status: "problem", message: `is not valid before ${from}`, advice };
  }
  if (days < 0) return { check, status: "problem", message: `expired on ${until}`, advice };
  const message = `expires on ${until}, in ${Math.floor(days)} days`;
  return days < FEW_DAYS ? { check, status: "warning", message, advice } : { check, status: "ok", message };
}

type DatabaseToCheck = {
  /** The name of the cell; undefined with one database. */
  readonly name?: string;
  readonly address: DatabaseAddress;
  readonly schema: string;
  readonly engine: Engine;
  readonly isEmbedded: boolean;
};

type Result = Omit<Finding, "check">;
type Check = (sql: Sql, database: DatabaseToCheck, config: Config) => Promise<Result>;

const DATABASE_TIMEOUT_MS = 10_000;
const LARGE_OFFSET_MS = 1_000;
const WRONG_OFFSET_MS = 60_000;
const MUCH_WAL_BYTES = GIB;
const TOO_MUCH_WAL_BYTES = 10 * GIB;

/** These checks run at each start too. They come first. */
const START_CHECKS: Readonly<Record<string, Check>> = {
  clock: checkClock,
  connections: checkConnections,
  partitions: checkPartitions,
};
const OTHER_CHECKS: Readonly<Record<string, Check>> = {
  migrations: checkMigrations,
  privileges: checkPrivileges,
  "replication slots": checkSlots,
  "database size": checkSize,
};

async function checkDatabase(database: DatabaseToCheck, config: Config, { isStart = false } = {}): Promise<Finding[]> {
  const prefix = database.name === undefined ? "" : `cell ${database.name}: `;
  let sql: Sql;
  try {
    sql = await connect(database.address, { statementTimeoutMs: DATABASE_TIMEOUT_MS, name: "vx doctor" });
  } catch (error) {
    const message = `cannot be reached: ${(error as Error).message || (error as { code?: string }).code}`;
    const advice = "check the URL of the database, its login, and that PostgreSQL runs and is not a standby";
    return [{ check: `${prefix}database`, status: "problem", message, advice }];
  }
  try {
    const findings: Finding[] = [];
    const checks = isStart ? START_CHECKS : { ...START_CHECKS, ...OTHER_CHECKS };
    for (const [name, check] of Object.entries(checks)) {
      findings.push({ check: prefix + name, ...(await check(sql, database, config).catch(failed)) });
    }
    return findings;
  } finally {
    await sql.end({ timeout: 1 });
  }
}

function failed(error: unknown): Result {
  const { message, code } = error as { message: string; code?: string };
  // The login of a server may read no table and few views.
  const isHidden = code === "42501";
  const advice = isHidden ? "run 'vx doctor' with the login of the owner to see it" : "run 'vx migrate' if the schema is missing";
  return { status: isHidden ? "warning" : "problem", message: `cannot be read: ${message}`, advice };
}

async function checkClock(sql: Sql): Promise<Result> {
  const before = Date.now();
  const [row] = await sql<{ ms: number }[]>`
    SELECT (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS ms`;
  const offset = (row?.ms ?? 0) - (before + Date.now()) / 2;
  const size = Math.abs(offset);
  const message = `the clock of this machine is ${(size / 1_000).toFixed(2)} s ${offset > 0 ? "behind" : "ahead of"} the database`;
  if (size < LARGE_OFFSET_MS) return { status: "ok", message };
  const status = size < WRONG_OFFSET_MS ? "warning" : "problem";
  return { status, message, advice: "synchronise both clocks, for example with chrony" };
}

async function checkConnections(sql: Sql, { isEmbedded }: DatabaseToCheck, config: Config): Promise<Result> {
  const [row] = await sql<{ max: number; reserved: number }[]>`
    SELECT current_setting('max_connections')::int AS max,
           current_setting('superuser_reserved_connections')::int
             + coalesce(current_setting('reserved_connections', true), '0')::int AS reserved`;
  const free = (row?.max ?? 0) - (row?.reserved ?? 0);
  const needed = serverConnections(config);
  const servers = Math.floor(free / needed);
  const message = `a server with these settings opens ${needed} connections, and max_connections leaves ${free}: enough for ${servers} servers`;
  // The embedded database has only one server.
  if (servers >= (isEmbedded ? 1 : 2)) return { status: "ok", message };
  const advice = "raise max_connections, or lower VX_DATABASE_CONNECTIONS, the pipelines or VX_WORKERS";
  return { status: servers === 1 ? "warning" : "problem", message, advice };
}

async function checkPartitions(sql: Sql, { schema }: DatabaseToCheck): Promise<Result> {
  const advice = "run 'vx migrate' as the owner, and check the clocks of the servers";
  const [other] = await sql.unsafe<{ months: number }[]>(
    `SELECT count(*)::int AS months FROM ${schema}.months_without_partition()`,
  );
  if (other && other.months > 0) {
    const message = "the default partition ledger_other_months has rows: entries of months without a partition";
    return { status: "problem", message, advice };
  }
  // From the catalog, which every login may read.
  const [row] = await sql<{ next: string; exists: boolean }[]>`
    WITH next AS (
      SELECT to_char((clock_timestamp() AT TIME ZONE 'UTC') + interval '1 month', 'YYYY_MM') AS month
    )
    SELECT 'ledger_' || month AS next, to_regclass(${schema} || '.ledger_' || month) IS NOT NULL AS exists
    FROM next`;
  if (!row?.exists) return { status: "warning", message: `the partition ${row?.next} of the next month is missing`, advice };
  return { status: "ok", message: `${row.next} exists, and every entry is in the partition of its month` };
}

async function checkMigrations(sql: Sql, { address, schema, engine }: DatabaseToCheck): Promise<Result> {
  const [row] = await sql.unsafe<{ version: number; release: string }[]>(
    `SELECT version, release FROM ${schema}.schema_version()`,
  );
  const pending = await readPending(address, { schema, distribution: distributionOf(engine) });
  const message = `the schema has version ${row?.version}, migrated by release ${row?.release}`;
  if (isEmpty(pending)) return { status: "ok", message };
  const advice = "run 'vx migrate' as the owner; a server that may migrates at its start";
  const counts = `${pending.tables.length} migrations and ${pending.functions} functions`;
  return { status: "warning", message: `${message}; ${counts} are pending`, advice };
}

async function checkPrivileges(sql: Sql, { schema, isEmbedded }: DatabaseToCheck): Promise<Result> {
  const [row] = await sql<Privileges[]>`
    SELECT current_user::text AS login,
      pg_has_role(current_user, ${APP_ROLE},
        CASE WHEN current_setting('server_version_num')::int >= 160000 THEN 'SET' ELSE 'MEMBER' END) AS may_assume,
      has_function_privilege(${APP_ROLE}, ${`${schema}.schema_version()`}, 'EXECUTE') AS may_call,
      has_table_privilege(${APP_ROLE}, ${`${schema}.ledger`}, 'INSERT, UPDATE, DELETE, TRUNCATE') AS app_may_write,
      has_table_privilege(current_user, ${`${schema}.ledger`}, 'INSERT, UPDATE, DELETE, TRUNCATE') AS login_may_write,
      (SELECT rolsuper FROM pg_roles WHERE rolname = ${APP_ROLE}) AS app_is_super`;
  if (!row) throw new Error("no row");
  const { login, may_assume, may_call, app_may_write, login_may_write, app_is_super } = row;
  if (!may_assume || !may_call) {
    const message = may_assume
      ? `the role ${APP_ROLE} may not execute the functions of the schema`
      : `${login} may not assume the role ${APP_ROLE}`;
    return {
      status: "problem",
      message,
      advice: `run 'vx migrate' as the owner, and GRANT ${APP_ROLE} TO ${login}`,
    };
  }
  if (app_may_write || app_is_super) {
    const advice = `revoke the table privileges of ${APP_ROLE}: only functions may change the ledger`;
    return { status: "problem", message: `the role ${APP_ROLE} may change the ledger directly`, advice };
  }
  if (login_may_write && !isEmbedded) {
    const advice = `for servers, use a login that is only a member of ${APP_ROLE} (docs/operations.md, "The database")`;
    return { status: "warning", message: `${login} is the owner and may change the ledger`, advice };
  }
  return { status: "ok", message: `${login} may assume ${APP_ROLE}, which may only execute functions` };
}

type Privileges = {
  readonly login: string;
  readonly may_assume: boolean;
  readonly may_call: boolean;
  readonly app_may_write: boolean;
  readonly login_may_write: boolean;
  readonly app_is_super: boolean;
};

async function checkSlots(sql: Sql): Promise<Result> {
  const slots = await sql<{ name: string; active: boolean; lost: boolean; bytes: number }[]>`
    SELECT slot_name::text AS name, active, wal_status = 'lost' AS lost,
           coalesce(pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn), 0)::float8 AS bytes
    FROM pg_replication_slots ORDER BY bytes DESC`;
  const [most] = slots;
  if (!most) return { status: "ok", message: "no replication slot retains the write-ahead log" };
  const lost = slots.find((slot) => slot.lost);
  const message = `the slot ${most.name} retains ${(most.bytes / GIB).toFixed(1)} GiB of the write-ahead log`;
  const advice = "bring its standby back, or drop the slot with pg_drop_replication_slot; else the disk fills up";
  if (lost)
    return {
      status: "problem",
      message: `the slot ${lost.name} has lost its position`,
      advice: "copy its standby again",
    };
  if (most.bytes < MUCH_WAL_BYTES) return { status: "ok", message };
  return { status: most.bytes < TOO_MUCH_WAL_BYTES ? "warning" : "problem", message, advice };
}

/** SQL shows the size of the database, not the space that is left. */
async function checkSize(sql: Sql): Promise<Result> {
  const [row] = await sql<{ bytes: number }[]>`SELECT pg_database_size(current_database())::float8 AS bytes`;
  return { status: "ok", message: `the database has ${((row?.bytes ?? 0) / GIB).toFixed(2)} GiB` };
}
