import { execFileSync } from "node:child_process";
import { appendFileSync } from "node:fs";
import { join, resolve } from "node:path";
import postgres from "postgres";
import { freePort } from "../../bench/server.ts";
import { CLIENTS } from "../support/installed.ts";
import { createTemporaryFolder } from "../support/temporary-folder.ts";

const FOLDER = resolve(CLIENTS, "citus");

/** A Citus cluster on this machine: a coordinator, which has the first port, and two workers. */
export type Cluster = {
  readonly ports: readonly number[];
  /** As the owner, at the node of this port. */
  url(port: number): string;
  stop(): void;
};

/** Builds Citus from the checkout. That is done once for each of its commits. */
export function buildCitus(source: string): void {
  execFileSync("test/citus/build-citus", [source, FOLDER], { stdio: ["ignore", "ignore", "inherit"] });
}

/** Starts a cluster whose nodes have the extension and do not know each other yet. */
export async function startCluster(): Promise<Cluster> {
  const folder = createTemporaryFolder("citus");
  const program = (name: string) => join(FOLDER, "bin", name);
  const isRoot = process.getuid?.() === 0;
  // PostgreSQL does not run as root.
  const run = (command: string, ...args: string[]) => {
    const asUser = ["--reuid", "postgres", "--regid", "postgres", "--clear-groups", command, ...args];
    const [file, rest] = isRoot ? ["setpriv", asUser] : [command, args];
    execFileSync(file as string, rest as string[], { stdio: ["ignore", "ignore", "inherit"] });
  };
  if (isRoot) execFileSync("chown", ["postgres", folder.path]);
  const ports = [await freePort(), await freePort(), await freePort()];
  const data = (port: number) => join(folder.path, String(port));
  for (const port of ports) {
    run(program("initdb"), "-D", data(port), "-U", "postgres", "-A", "trust", "-N");
    appendFileSync(join(data(port), "postgresql.conf"), settingsOf(port, folder.path));
    run(program("pg_ctl"), "-D", data(port), "-l", join(folder.path, `${port}.log`), "-w", "start");
  }
  const url = (port: number) => `postgres://postgres@127.0.0.1:${port}/postgres`;
  for (const port of ports) {
    const sql = postgres(url(port), { max: 1 });
    await sql`CREATE EXTENSION citus`;
    await sql.end();
  }
  return {
    ports,
    url,
    stop: () => {
      for (const port of ports) run(program("pg_ctl"), "-D", data(port), "-m", "immediate", "stop");
      folder.remove();
    },
  };
}

/** Makes the first node the coordinator and the others its workers. */
export async function connectNodes(coordinator: postgres.Sql, [first = 0, ...workers]: readonly number[]) {
  await coordinator`SELECT citus_set_coordinator_host('127.0.0.1', ${first})`;
  for (const port of workers) await coordinator`SELECT citus_add_node('127.0.0.1', ${port})`;
}

function settingsOf(port: number, folder: string): string {
  return `
port = ${port}
listen_addresses = '127.0.0.1'
unix_socket_directories = '${folder}'
shared_preload_libraries = 'citus'
wal_level = logical
max_worker_processes = 40
max_wal_senders = 20
max_replication_slots = 20
max_connections = 200
max_prepared_transactions = 200
citus.node_conninfo = 'sslmode=disable'
citus.enable_statistics_collection = off
`;
}
