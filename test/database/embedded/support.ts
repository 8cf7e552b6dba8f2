import { type ChildProcess, spawn } from "node:child_process";
import { chmod, mkdtemp, readFile, readlink, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import postgres from "postgres";
import { type EmbeddedPostgres, startEmbeddedPostgres } from "../../../src/database/embedded/embedded-postgres.ts";
import { errnoOf } from "../../../src/database/embedded/error.ts";
import { listProcesses } from "../../../src/database/embedded/processes.ts";
import { putDatabase } from "../../support/data-folder.ts";

export const isRoot = process.getuid?.() === 0;
/** Options of `describe`: starting real servers takes long. */
export const patient = { timeout: 90_000 };

const folders: string[] = [];
const servers: EmbeddedPostgres[] = [];
const owners: ChildProcess[] = [];

export async function makeFolder(mode = 0o755): Promise<string> {
  const folder = await realpath(await mkdtemp(join(tmpdir(), "vx-embedded-")));
  await chmod(folder, mode);
  folders.push(folder);
  return folder;
}

/** A folder with a new database, for tests whose subject is not its creation. */
export async function makeDataFolder(): Promise<string> {
  const folder = await makeFolder();
  putDatabase(folder);
  return folder;
}

export function removeAtEnd(folder: string): void {
  folders.push(folder);
}

export type Started = EmbeddedPostgres & { readonly said: readonly string[]; readonly password: string };

export async function start(dataDir: string): Promise<Started> {
  const said: string[] = [];
  const server = await startEmbeddedPostgres({ dataDir, print: (line) => said.push(line) });
  servers.push(server);
  return Object.assign(server, { said, password: server.passwordOf("postgres") });
}

type Report = { clusterDir: string; socketDir: string; adopted: boolean; said: string[]; password: string; error?: string };
export type Owner = { readonly report: Report; kill(): Promise<void> };
type OwnerOptions = { uid?: number; umask?: string; script?: string; path?: string };

/** Another process that starts the database; `kill` sends SIGKILL to its whole process group. */
export function launchOwner(dataDir: string, options: OwnerOptions = {}): { process: ChildProcess; ready: Promise<Owner> } {
  const script = options.script ?? join(import.meta.dirname, "start-and-wait.ts");
  const identity = options.uid === undefined ? {} : { uid: options.uid, gid: options.uid };
  const shell = `umask ${options.umask ?? "022"}; exec "$0" "$@"`;
  const child = spawn("/bin/sh", ["-c", shell, process.execPath, script, dataDir], {
    stdio: ["ignore", "pipe", "inherit"],
    detached: true,
    cwd: "/",
    env: { ...process.env, PATH: [options.path, process.env.PATH].filter(Boolean).join(":") },
    ...identity,
  });
  owners.push(child);
  return { process: child, ready: reportOf(child) };
}

async function reportOf(child: ChildProcess): Promise<Owner> {
  let text = "";
  for await (const chunk of child.stdout ?? []) {
    text += String(chunk);
    if (text.endsWith("\n")) break;
  }
  return { report: JSON.parse(text) as Report, kill: () => killOwner(child) };
}

export async function killOwner(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return;
  const { promise, resolve } = Promise.withResolvers<void>();
  child.once("exit", () => resolve());
  process.kill(-child.pid, "SIGKILL");
  await promise;
}

/** Stops all processes and servers of a test and removes its folders. */
export async function cleanUp(): Promise<void> {
  for (const owner of owners.splice(0)) await killOwner(owner);
  for (const server of servers.splice(0)) await server.stop();
  for (const folder of folders.splice(0)) await rm(folder, { recursive: true, force: true });
}

type Reachable = { readonly socketDir: string; readonly password: string };

export function connect(server: Reachable): postgres.Sql {
  const onnotice = () => undefined;
  const login = { username: "postgres", password: server.password, database: "postgres" };
  return postgres({ host: server.socketDir, port: 5432, ...login, max: 1, onnotice });
}

export async function query(server: Reachable, text: string): Promise<Record<string, unknown>[]> {
  const sql = connect(server);
  try {
    return [...(await sql.unsafe(text))];
  } finally {
    await sql.end({ timeout: 1 });
  }
}

/** Starts a query that runs until it is cancelled. Resolves when PostgreSQL executes it. */
export async function beginEndless(server: Reachable, text: string): Promise<{ outcome: Promise<string> }> {
  const sql = connect(server);
  const outcome = sql.unsafe(text).then(
    () => "ended",
    () => "cut",
  );
  const active = `select 1 from pg_stat_activity where state = 'active' and query = '${text}'`;
  await eventually(async () => (await query(server, active)).length > 0);
  return { outcome: outcome.finally(() => sql.end({ timeout: 0 })) };
}

export async function postmasterPid(server: { clusterDir: string }): Promise<number> {
  return Number.parseInt(await readFile(join(server.clusterDir, "postmaster.pid"), "utf8"), 10);
}

/** Processes with this folder in the command line or as working folder, and their children. */
export async function processesIn(folder: string): Promise<number[]> {
  const found = new Set<number>();
  for (const { pid, parent, command } of (await listProcesses()).sort((a, b) => a.pid - b.pid)) {
    // A process that is exiting has no command line any more, and no memory.
    if (command === "") continue;
    // In a container root may lack the permission to read the working folder of another user's process.
    const cwd = await readlink(`/proc/${pid}/cwd`).catch(() => "");
    const isIn = command.includes(folder) || cwd.startsWith(folder) || found.has(parent);
    if (isIn && pid !== process.pid) found.add(pid);
  }
  return [...found];
}

export async function killProcessesIn(folder: string): Promise<void> {
  let found: number[];
  do {
    found = await processesIn(folder);
    for (const pid of found) {
      try {
        process.kill(pid, "SIGKILL");
      } catch (error) {
        // A child process exits by itself after its postmaster was killed.
        if (errnoOf(error) !== "ESRCH") throw error;
      }
    }
    // The postmaster may have started a child between the list and its end.
  } while (found.length > 0);
}

export async function eventually(condition: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + 30_000;
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error("the condition was not met within 30 s");
    await sleep(5);
  }
}
