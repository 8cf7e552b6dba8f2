import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach } from "vitest";
import { type LaunchedApp, launchTestApp } from "../support/app.ts";
import { createDataFolder } from "../support/data-folder.ts";
import { type ProcessOptions, type ServerProcess, startServerProcess } from "../support/process.ts";
import { bearer } from "../support/protocols.ts";
import { createTemporaryFolder } from "../support/temporary-folder.ts";

let folder: ReturnType<typeof createTemporaryFolder>;
let servers: ServerProcess[];
let apps: LaunchedApp[];

/** Creates an empty data folder, or one with a new database, for each test of the file, and stops the servers that the test started. */
export function useDataFolder({ withDatabase = false } = {}): void {
  beforeEach(() => {
    folder = (withDatabase ? createDataFolder : createTemporaryFolder)("process");
    servers = [];
    apps = [];
  });
  afterEach(async () => {
    for (const app of apps) await app.end();
    for (const server of servers) if (server.child.exitCode === null) await server.end("SIGTERM");
    folder.remove();
  });
}

/** A path in the data folder of the test. */
export function inDataFolder(...names: string[]): string {
  return join(folder.path, ...names);
}

export function start(env: Record<string, string> = {}, options: ProcessOptions = {}): ServerProcess {
  const server = startServerProcess({ VX_DATA_DIR: folder.path, ...env }, options);
  servers.push(server);
  return server;
}

/** Starts a server in this process, for tests whose subject is not the process: a start takes a tenth of the CPU time. */
export function startHere(env: Record<string, string> = {}): LaunchedApp {
  const app = launchTestApp({ VX_DATA_DIR: folder.path, ...env });
  apps.push(app);
  return app;
}

export const ready = /^vx ready on (\S+)$/m;

export function postmasterPid(): number {
  return Number(readFileSync(inDataFolder("postgres", "postmaster.pid"), "utf8").split("\n")[0]);
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    // A zombie, as in a container without an init process.
    const stat = `/proc/${pid}/stat`;
    return !existsSync(stat) || !/\) Z /.test(readFileSync(stat, "utf8"));
  } catch {
    return false;
  }
}

export function childrenOf(pid: number): number[] {
  const path = `/proc/${pid}/task/${pid}/children`;
  return existsSync(path) ? readFileSync(path, "utf8").trim().split(" ").filter(Boolean).map(Number) : [];
}

/** The worker processes of a server. */
export function workersOf(pid: number): number[] {
  return childrenOf(pid).filter((child) => readFileSync(`/proc/${child}/cmdline`, "utf8").includes("vx.js"));
}

export async function getMe(url: string, secret: string): Promise<{ status: number; body: Record<string, unknown> }> {
  const answer = await fetch(`${url}/vx.v1.MeService/GetMe`, {
    method: "POST",
    headers: { "content-type": "application/json", ...bearer(secret) },
    body: "{}",
  });
  return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
}
