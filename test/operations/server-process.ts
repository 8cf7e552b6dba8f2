import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { afterEach, beforeEach, expect, vi } from "vitest";
import { Health, HealthCheckResponse_ServingStatus as Status } from "../../gen/health/v1/health_pb.js";
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

/** A generation of a sandbox model, unless the options say otherwise. */
export async function generate(url: string, secret: string, options: object = {}): Promise<Response> {
  const body = { model: "vx-sandbox-small", messages: [{ role: "user", content: "hello" }], ...options };
  return await fetch(`${url}/v1/generate`, {
    method: "POST",
    headers: { "content-type": "application/json", ...bearer(secret) },
    body: JSON.stringify(body),
  });
}

/** The text of a stream whose first part was read. */
export async function restOf(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<string> {
  let text = "";
  for (let part = await reader.read(); !part.done; part = await reader.read()) text += Buffer.from(part.value).toString();
  return text;
}

/** SIGUSR2 raises an uncaught exception, SIGWINCH an unhandled rejection. */
export const PLANTED_CRASHES = `data:text/javascript,${encodeURIComponent(`
  process.on("SIGUSR2", () => { throw new Error("planted exception"); });
  process.on("SIGWINCH", () => { Promise.reject(new Error("planted rejection")); });`)}`;

/** A separate connection for each request. */
export const CLOSE = { headers: { connection: "close" } };

type Draining = { readonly url: string; readonly adminUrl: string; readonly secret: string };

/** After a stop with a delay has begun. Each call has its own connection, so that every worker gets some. */
export async function isDraining({ url, adminUrl, secret }: Draining): Promise<void> {
  for (const one of [url, adminUrl]) await vi.waitFor(async () => expect((await fetch(`${one}/readyz`, CLOSE)).status).toBe(503));
  for (let i = 0; i < 4; i++) {
    expect((await fetch(`${url}/readyz`, CLOSE)).status).toBe(503);
    expect((await fetch(`${url}/livez`, CLOSE)).status).toBe(200);
    expect((await fetch(`${url}/v1/me`, { headers: { ...CLOSE.headers, ...bearer(secret) } })).status).toBe(200);
  }
  const health = createClient(Health, createGrpcTransport({ baseUrl: url }));
  expect(await health.check({})).toMatchObject({ status: Status.NOT_SERVING });
  // Without asking for it, so that no connection is reused when the drain closes it.
  expect((await fetch(`${url}/livez`)).headers.get("connection")).toBe("close");
}

/** What a health watch reports until it ends. */
export async function watch(url: string) {
  const health = createClient(Health, createGrpcTransport({ baseUrl: url }));
  const told: Status[] = [];
  const ended = (async () => {
    for await (const { status } of health.watch({})) told.push(status);
  })().catch(() => undefined);
  await vi.waitFor(() => expect(told).toEqual([Status.SERVING]));
  return { told, ended };
}
