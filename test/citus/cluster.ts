import { execFile, execFileSync } from "node:child_process";
import { appendFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import postgres from "postgres";
import { freePort } from "../../bench/server.ts";
import { CLIENTS } from "../support/installed.ts";
import { createTemporaryFolder } from "../support/temporary-folder.ts";

const FOLDER = resolve(CLIENTS, "citus");

/** A PostgreSQL server that belongs to a test. */
export type Node = {
  readonly port: number;
  /** As the owner. */
  readonly url: string;
  readonly clusterDir: string;
  readonly logFile: string;
  /** Stops it at once, without a checkpoint. */
  stop(): Promise<void>;
  /** Starts it again after it was stopped or killed. */
  restart(): Promise<void>;
};

export type Nodes = { readonly nodes: readonly Node[]; readonly folder: string; stop(): Promise<void> };

/** A Citus cluster on this machine: a coordinator, which has the first port, and two workers. */
export type Cluster = {
  readonly ports: readonly number[];
  readonly nodes: readonly Node[];
  /** As the owner, at the node of this port. */
  url(port: number): string;
  stop(): Promise<void>;
};

/** Builds Citus from the checkout. That is done once for each of its commits. */
export function buildCitus(source: string): void {
  execFileSync("test/citus/build-citus", [source, FOLDER], { stdio: ["ignore", "ignore", "inherit"] });
}

/** Starts a cluster whose nodes have the extension and do not know each other yet. */
export async function startCluster(): Promise<Cluster> {
  const { nodes, stop } = await startNodes(3, { hasCitus: true });
  const urls = new Map(nodes.map(({ port, url }) => [port, url]));
  return { ports: [...urls.keys()], nodes, url: (port) => urls.get(port) as string, stop };
}

/** Starts servers of the PostgreSQL that Citus was built against, with the extension or without. */
export async function startNodes(count: number, { hasCitus }: { hasCitus: boolean }): Promise<Nodes> {
  const folder = createTemporaryFolder("citus");
  if (process.getuid?.() === 0) execFileSync("chown", ["postgres", folder.path]);
  const nodes: Node[] = [];
  const stop = async () => {
    for (const node of nodes) await node.stop();
    folder.remove();
  };
  try {
    while (nodes.length < count) nodes.push(await startNode(folder.path, hasCitus));
  } catch (error) {
    await stop();
    throw error;
  }
  return { nodes, folder: folder.path, stop };
}

/** Makes the first node the coordinator and the others its workers. */
export async function connectNodes(coordinator: postgres.Sql, [first = 0, ...workers]: readonly number[]) {
  await coordinator`SELECT citus_set_coordinator_host('127.0.0.1', ${first})`;
  for (const port of workers) await coordinator`SELECT citus_add_node('127.0.0.1', ${port})`;
}

/** The port of the worker that has the tables of a cell. */
export async function workerPort(coordinator: postgres.Sql, schema: string): Promise<number> {
  const [row] = await coordinator<{ port: number }[]>`
    SELECT nodeport AS port FROM citus_shards WHERE table_name = ${`${schema}.lanes`}::regclass`;
  return row?.port ?? 0;
}

/** Moves the tables of a cell to the worker with this port, unless they are there. */
export async function moveSchema(coordinator: postgres.Sql, schema: string, port: number): Promise<void> {
  if ((await workerPort(coordinator, schema)) === port) return;
  await coordinator`SELECT citus_schema_move(${schema}, '127.0.0.1', ${port}::integer)`;
}

async function startNode(folder: string, hasCitus: boolean): Promise<Node> {
  const port = await freePort();
  const clusterDir = join(folder, String(port));
  const logFile = join(folder, `${port}.log`);
  await run("initdb", "-D", clusterDir, "-U", "postgres", "-A", "trust", "-N");
  const settings = settingsOf(port, folder) + (hasCitus ? CITUS_SETTINGS : "");
  appendFileSync(join(clusterDir, "postgresql.conf"), settings);
  const restart = () => control(clusterDir, "-l", logFile, "-w", "start");
  const stop = () => control(clusterDir, "-m", "immediate", "stop");
  await restart();
  const url = `postgres://postgres@127.0.0.1:${port}/postgres`;
  if (hasCitus) {
    const sql = postgres(url, { max: 1 });
    await sql`CREATE EXTENSION citus`;
    await sql.end();
  }
  return { port, url, clusterDir, logFile, stop, restart };
}

const control = (clusterDir: string, ...args: string[]) => run("pg_ctl", "-D", clusterDir, ...args);

/** PostgreSQL does not run as root. */
async function run(name: string, ...args: string[]): Promise<void> {
  const program = join(FOLDER, "bin", name);
  const asUser = ["--reuid", "postgres", "--regid", "postgres", "--clear-groups", program, ...args];
  const [file, rest] = process.getuid?.() === 0 ? ["setpriv", asUser] : [program, args];
  await promisify(execFile)(file as string, rest as string[]);
}

function settingsOf(port: number, folder: string): string {
  return `
port = ${port}
listen_addresses = '127.0.0.1'
unix_socket_directories = '${folder}'
max_connections = 200
`;
}

const CITUS_SETTINGS = `
shared_preload_libraries = 'citus'
wal_level = logical
max_worker_processes = 40
max_wal_senders = 20
max_replication_slots = 20
max_prepared_transactions = 200
citus.node_conninfo = 'sslmode=disable'
citus.enable_statistics_collection = off
`;
