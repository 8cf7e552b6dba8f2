import { type ChildProcess, execFile, spawn } from "node:child_process";
import { appendFile, chmod, chown, cp, mkdir, readFile, stat, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { promisify } from "node:util";
import postgres from "postgres";
import { loginTo } from "./embedded.ts";
import { createTemporaryFolder } from "./temporary-folder.ts";

/** The properties of a PostgreSQL server that are needed to copy it. */
export type PrimaryServer = { readonly clusterDir: string; readonly socketDir: string; passwordOf(role: string): string };

/** A hot standby that follows a primary by streaming replication. */
export type Standby = PrimaryServer & {
  readonly socketPath: string;
  /** Makes it a primary, with a timeline of its own. */
  promote(): Promise<void>;
  /** Starts it again after all its processes were killed. */
  restart(): Promise<void>;
  stop(): Promise<void>;
};

const READY_MS = 20_000;

/** Enables streaming replication on a primary, which must be restarted afterwards. */
export async function allowReplication(owner: postgres.Sql): Promise<void> {
  await owner`ALTER SYSTEM SET wal_level = 'replica'`;
  await owner`ALTER SYSTEM SET max_wal_senders = 4`;
  // The checkpoint of a later backup would remove what a standby still receives, which then reconnects only after seconds.
  await owner`ALTER SYSTEM SET wal_keep_size = '128MB'`;
}

/** Without an address of its own, the standby connects to the primary's socket. */
export async function startStandby(
  primary: PrimaryServer,
  owner: postgres.Sql,
  address = `host=${primary.socketDir}`,
): Promise<Standby> {
  const folder = createTemporaryFolder("standby");
  const cluster = join(folder.path, "postgres");
  const { uid, gid } = await stat(primary.clusterDir);
  await appendFile(join(primary.clusterDir, "pg_hba.conf"), "local replication all scram-sha-256\n");
  await owner`SELECT pg_reload_conf()`;
  await copyCluster(primary.clusterDir, cluster, owner);
  const connection = `${address} user=postgres password=${primary.passwordOf("postgres")}`;
  await writeFile(join(cluster, "standby.signal"), "");
  await appendFile(join(cluster, "postgresql.auto.conf"), `primary_conninfo = '${connection}'\n`);
  await giveTo(folder.path, cluster, uid, gid);
  const [program = ""] = await commandOf(primary);
  let process: ChildProcess | undefined;
  const start = async () => {
    process = launch(program, cluster, folder.path, { uid, gid });
    await untilReadable({ ...loginTo(primary), host: folder.path });
  };
  const stop = async () => {
    if (process) await end(process);
    folder.remove();
  };
  const restart = async () => {
    if (process) await end(process);
    await start();
  };
  try {
    await start();
  } catch (error) {
    await stop();
    throw error;
  }
  const server = { clusterDir: cluster, socketDir: folder.path, passwordOf: (role: string) => primary.passwordOf(role) };
  const socketPath = join(folder.path, ".s.PGSQL.5432");
  return { ...server, socketPath, promote: () => promote(server), restart, stop };
}

async function promote(server: PrimaryServer): Promise<void> {
  const owner = postgres({ ...loginTo(server), max: 1 });
  await owner`SELECT pg_promote(true)`;
  await owner.end({ timeout: 5 });
}

/** Makes an online backup. The standby gets the write-ahead log from the primary afterwards. */
async function copyCluster(from: string, to: string, owner: postgres.Sql): Promise<void> {
  const session = await owner.reserve();
  try {
    await session`SELECT pg_backup_start('standby', true)`;
    await copyWhileWritten(from, to);
    const [backup] = await session<{ label: string }[]>`SELECT labelfile AS label FROM pg_backup_stop(false)`;
    await writeFile(join(to, "backup_label"), backup?.label ?? "");
  } finally {
    session.release();
  }
}

const NOT_COPIED = ["postmaster.pid", "postmaster.opts", "pg_wal", "pg_replslot", "pgsql_tmp"];

async function copyWhileWritten(from: string, to: string): Promise<void> {
  await cp(from, to, { recursive: true, filter: (source) => !NOT_COPIED.includes(basename(source)) });
  for (const name of ["pg_wal", "pg_replslot"]) await mkdir(join(to, name));
}

async function giveTo(folder: string, cluster: string, uid: number, gid: number): Promise<void> {
  await chmod(cluster, 0o700);
  if (process.getuid?.() !== 0) return;
  await promisify(execFile)("chown", ["-R", `${uid}:${gid}`, cluster]);
  await chown(folder, uid, gid);
}

/** The command line of a running server. */
async function commandOf({ clusterDir }: PrimaryServer): Promise<string[]> {
  const pid = (await readFile(join(clusterDir, "postmaster.pid"), "utf8")).split("\n")[0];
  return (await readFile(`/proc/${pid}/cmdline`, "utf8")).split("\0");
}

function launch(program: string, cluster: string, socketDir: string, identity: { uid: number; gid: number }): ChildProcess {
  const settings = [`unix_socket_directories=${socketDir}`, "logging_collector=off", "cluster_name=standby", "hot_standby=on"];
  const args = ["-D", cluster, ...settings.flatMap((setting) => ["-c", setting])];
  return spawn(program, args, { cwd: "/", stdio: "ignore", ...(process.getuid?.() === 0 ? identity : {}) });
}

async function untilReadable(login: ReturnType<typeof loginTo>): Promise<void> {
  const until = performance.now() + READY_MS;
  for (;;) {
    const sql = postgres({ ...login, max: 1 });
    try {
      await sql`SELECT vx.schema_version()`;
      return;
    } catch (error) {
      if (performance.now() > until) throw error;
      await wait(50);
    } finally {
      await sql.end({ timeout: 0 });
    }
  }
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = new Promise((resolve) => child.once("exit", resolve));
  child.kill("SIGQUIT");
  await ended;
}
