import { spawnSync } from "node:child_process";
import { chownSync, existsSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { loginIn } from "../support/embedded.ts";
import { type ServerProcess, startServerProcess } from "../support/process.ts";
import { createTemporaryFolder } from "../support/temporary-folder.ts";
import { buildImages, type Image, missingTools, removeContainers } from "./build-images.ts";

const problem = missingTools();
if (problem !== undefined) console.warn(`SKIPPED: the images are not built: ${problem}`);

const MEGABYTE = 1e6;
/** Calls that run at the same time while the server stops. */
const CALLERS = 20;

describe.skipIf(problem !== undefined)("the images", () => {
  const folder = createTemporaryFolder("image");
  const data = join(folder.path, "data");
  const noData = join(folder.path, "no-data");
  let images: ReturnType<typeof buildImages>;
  let server: ServerProcess;
  let url: string;
  let key: string;

  beforeAll(async () => {
    images = buildImages();
    for (const path of [data, noData]) {
      mkdirSync(path);
      chownSync(path, ...idsOf(images.postgres));
    }
    server = start(images.postgres);
    url = await server.line(/vx ready on (\S+)/);
    key = await server.line(/vx_live_\w+/);
  }, 1_200_000);
  afterAll(async () => {
    await server?.end("SIGKILL");
    removeContainers();
    folder.remove();
  });

  function start(image: Image, env: Record<string, string> = {}): ServerProcess {
    const { Env, Entrypoint, Cmd } = image.config;
    const own = image === images.postgres ? data : noData;
    const command = [own, data, String(idsOf(image)[0]), "env", "-i", ...Env, ...pairs(env), ...Entrypoint, ...Cmd];
    return startServerProcess({}, { command: ["test/image/start-container", image.root, ...command] });
  }

  async function generate(): Promise<number> {
    const response = await fetch(`${url}/v1/generate`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({ model: "vx-sandbox-small", messages: [{ role: "user", content: "Hello" }] }),
    });
    await response.arrayBuffer();
    return response.status;
  }

  test("are at most 120 and 200 MB compressed", () => {
    console.log(`vx ${images.vx.compressedBytes / MEGABYTE} MB`);
    console.log(`vx-postgres ${images.postgres.compressedBytes / MEGABYTE} MB`);
    expect(images.vx.compressedBytes).toBeLessThanOrEqual(120 * MEGABYTE);
    expect(images.postgres.compressedBytes).toBeLessThanOrEqual(200 * MEGABYTE);
  });

  test("have the labels of OCI, a numeric user and no settings of the build machine", () => {
    for (const { config, root } of [images.vx, images.postgres]) {
      const names = ["created", "source", "version", "revision", "licenses", "title", "description", "documentation"];
      expect(Object.keys(config.Labels)).toEqual(expect.arrayContaining(names.map((name) => `org.opencontainers.image.${name}`)));
      expect(config.Labels["org.opencontainers.image.version"]).toBe("1.2.3");
      expect(config.User).toMatch(/^[1-9]\d+:[1-9]\d+$/);
      expect([".npmrc", "opt/vx/.npmrc", "root/.npmrc", "root/.npm"].filter((path) => existsSync(join(root, path)))).toEqual([]);
    }
  });

  test("the server is a child of PID 1, not root, without capabilities and on a read-only root", async () => {
    expect(await generate()).toBe(200);
    const { pid, status } = processOf(server, "node|MainThread|node-MainThread");
    expect(status).toMatch(/^Uid:\t10001\t10001\t10001\t10001$/m);
    expect(status).toMatch(/^CapBnd:\t0+$/m);
    expect(status).toMatch(/^NoNewPrivs:\t1$/m);
    expect(status).toMatch(/^NSpid:\t\d+\t(?!1$)\d+$/m);
    expect(readFileSync(`/proc/${pid}/mountinfo`, "utf8")).toMatch(/^\S+ \S+ \S+ \S+ \/ ro[, ]/m);
  });

  test("the health check passes while the server responds, and fails otherwise", () => {
    const [program, ...args] = images.vx.config.Healthcheck.Test.slice(1);
    const check = (port: string) =>
      spawnSync("chroot", [images.vx.root, "env", `PORT=${port}`, "VX_HOST=0.0.0.0", program as string, ...args]).status;
    expect(check(new URL(url).port)).toBe(0);
    expect(check("1")).toBe(1);
  });

  test("a killed PostgreSQL leaves no zombie, and the server recovers", async () => {
    const { pid } = processOf(server, "postgres");
    process.kill(pid, "SIGKILL");
    await vi.waitFor(async () => expect(await generate()).toBe(200), { timeout: 30_000 });
    expect(processOf(server, "postgres").pid).not.toBe(pid);
    await vi.waitFor(() => expect(descendants(server).filter(({ status }) => /^State:\tZ/m.test(status))).toEqual([]));
  });

  test("the image without PostgreSQL asks for DATABASE_URL, and runs with it", async () => {
    const without = start(images.vx);
    expect(await without.exited()).toBe(1);
    expect(without.stderr()).toContain("DATABASE_URL");

    const { password } = loginIn(data);
    const DATABASE_URL = `postgres:///postgres?host=%2Fmnt%2Frun&user=postgres&password=${password}`;
    const second = start(images.vx, { DATABASE_URL });
    const response = await fetch(`${await second.line(/vx ready on (\S+)/)}/v1/me`, {
      headers: { authorization: `Bearer ${key}` },
    });
    expect(response.status).toBe(200);
    stop(second);
    expect(await second.exited()).toBe(0);
  });

  test("SIGTERM under load loses no call, and charges each call once", async () => {
    stop(server);
    expect(await server.exited()).toBe(0);
    server = start(images.postgres, { VX_SHUTDOWN_DELAY: "3" });
    url = await server.line(/vx ready on (\S+)/);
    const before = await balance();

    // As a load balancer: calls go to the server until it is not ready.
    let isReady = true;
    const statuses: number[] = [];
    const callers = Array.from({ length: CALLERS }, async () => {
      while (isReady) statuses.push(await generate());
    });
    await vi.waitFor(() => expect(statuses.length).toBeGreaterThan(10 * CALLERS), { timeout: 30_000 });
    stop(server);
    while (isReady) isReady = (await fetch(`${url}/readyz`)).status === 200;
    await Promise.all(callers);
    expect(await server.exited()).toBe(0);
    expect(new Set(statuses)).toEqual(new Set([200]));

    server = start(images.postgres);
    url = await server.line(/vx ready on (\S+)/);
    const cost = (before - (await balance())) / BigInt(statuses.length);
    expect(before - (await balance())).toBe(cost * BigInt(statuses.length));
    expect(cost).toBeGreaterThan(0n);
  });

  async function balance(): Promise<bigint> {
    const response = await fetch(`${url}/v1/me`, { headers: { authorization: `Bearer ${key}` } });
    return BigInt(((await response.json()) as { balance_micros: number }).balance_micros);
  }
});

function idsOf({ config }: Image): [uid: number, gid: number] {
  const [uid, gid] = config.User.split(":").map(Number);
  return [uid as number, gid as number];
}

function pairs(env: Record<string, string>): string[] {
  return Object.entries({ PORT: "0", VX_ADMIN_PORT: "0", ...env }).map(([name, value]) => `${name}=${value}`);
}

type Process = { readonly pid: number; readonly status: string };

/** All processes below the one that the test started. */
function descendants({ child }: ServerProcess): Process[] {
  const all = readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map((name) => ({ pid: Number(name), status: statusOf(name) }));
  const below = (parent: number): Process[] =>
    all.filter(({ status }) => new RegExp(`^PPid:\\t${parent}$`, "m").test(status)).flatMap((one) => [one, ...below(one.pid)]);
  return below(child.pid as number);
}

function statusOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/status`, "utf8");
  } catch {
    return "";
  }
}

/** The first process with this name: the postmaster is older than its children. */
function processOf(server: ServerProcess, name: string): Process {
  const found = descendants(server).find(({ status }) => new RegExp(`^Name:\\t(${name})$`, "m").test(status));
  if (!found) throw new Error(`no process ${name}`);
  return found;
}

/** As `docker stop` does: sends SIGTERM to PID 1 of the container. */
function stop({ child }: ServerProcess): void {
  const init = readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, "utf8").trim();
  process.kill(Number(init), "SIGTERM");
}
