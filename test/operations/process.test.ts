import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import postgres from "postgres";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { type ServerProcess, startServerProcess } from "../support/process.ts";
import { bearer } from "../support/protocols.ts";
import { createTemporaryFolder } from "../support/temporary-folder.ts";

let folder: ReturnType<typeof createTemporaryFolder>;
let servers: ServerProcess[];

beforeEach(() => {
  folder = createTemporaryFolder("process");
  servers = [];
});
afterEach(async () => {
  for (const server of servers) if (server.child.exitCode === null) await server.end("SIGTERM");
  folder.remove();
});

function start(env: Record<string, string> = {}): ServerProcess {
  const server = startServerProcess({ VX_DATA_DIR: folder.path, ...env });
  servers.push(server);
  return server;
}

const ready = /^vx ready on (\S+)$/m;

function postmasterPid(): number {
  return Number(readFileSync(join(folder.path, "postgres", "postmaster.pid"), "utf8").split("\n")[0]);
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    // Dead, but nobody has asked for its exit code: what a container without an init leaves of orphans.
    const stat = `/proc/${pid}/stat`;
    return !existsSync(stat) || !/\) Z /.test(readFileSync(stat, "utf8"));
  } catch {
    return false;
  }
}

async function getMe(
  url: string,
  secret: string,
): Promise<{ status: number; body: Record<string, unknown> }> {
  const answer = await fetch(`${url}/vx.v1.MeService/GetMe`, {
    method: "POST",
    headers: { "content-type": "application/json", ...bearer(secret) },
    body: "{}",
  });
  return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
}

test("the first start makes a demo key that works at once and later, and is shown once", async () => {
  const first = start();
  const secret = await first.line(/(vx_live_\w+)/);
  const url = await first.line(ready);
  expect(first.stdout().trim().split("\n").at(-1)).toBe(`vx ready on ${url}`);
  expect(first.stdout()).toContain("curl ");
  expect(await getMe(url, secret)).toMatchObject({
    status: 200,
    body: { keyName: "demo", balance: "$10.00" },
  });
  expect(await first.end("SIGTERM")).toBe(0);
  expect(first.stderr()).not.toContain(secret);

  const second = start();
  expect(await getMe(await second.line(ready), secret)).toMatchObject({
    status: 200,
    body: { balance: "$10.00" },
  });
  expect(second.stdout()).not.toContain("vx_live_");
  expect(await second.end("SIGINT")).toBe(0);
});

test("the operator token is made once and readable by its owner alone", async () => {
  const server = start();
  await server.line(ready);
  const path = join(folder.path, "admin-token");
  expect(statSync(path).mode & 0o777).toBe(0o600);
  const token = readFileSync(path, "utf8");
  expect(token.trim()).toMatch(/^[\w-]{43}$/);
  await server.end("SIGTERM");
  const again = start();
  await again.line(ready);
  expect(readFileSync(path, "utf8")).toBe(token);
});

test.each(["SIGTERM", "SIGINT"] as const)("%s leaves no process behind", async (signal) => {
  const server = start();
  await server.line(ready);
  const postmaster = postmasterPid();
  expect(isAlive(postmaster)).toBe(true);
  expect(await server.end(signal)).toBe(0);
  expect(isAlive(postmaster)).toBe(false);
  expect(existsSync(join(folder.path, "postgres", "postmaster.pid"))).toBe(false);
});

test("after kill -9 the next start takes the database over, and nothing is lost", async () => {
  const first = start();
  const secret = await first.line(/(vx_live_\w+)/);
  await first.line(ready);
  expect(await first.end("SIGKILL")).toBe("SIGKILL");

  const second = start();
  expect(await getMe(await second.line(ready), secret)).toMatchObject({ status: 200 });
  const postmaster = postmasterPid();
  expect(await second.end("SIGTERM")).toBe(0);
  expect(isAlive(postmaster)).toBe(false);
});

test("a second server on the same data folder says so and leaves the first one alone", async () => {
  const first = start();
  const secret = await first.line(/(vx_live_\w+)/);
  const url = await first.line(ready);
  const second = start();
  expect(await second.exited()).toBe(1);
  expect(second.stderr().trim().split("\n")).toHaveLength(1);
  expect(second.stderr()).toContain(`is in use by vx server, process ${first.child.pid}`);
  expect(await getMe(url, secret)).toMatchObject({ status: 200 });
});

test("an embedded database that is killed with all its children comes back by itself", async () => {
  const server = start();
  const secret = await server.line(/(vx_live_\w+)/);
  const url = await server.line(ready);
  killFamily(postmasterPid());
  // Until it is back, calls are refused with 503, not with anything that says the key is wrong.
  await vi.waitFor(
    async () => {
      const { status } = await getMe(url, secret);
      expect([200, 503]).toContain(status);
      expect(status).toBe(200);
    },
    { timeout: 15_000, interval: 50 },
  );
  await vi.waitFor(async () => expect((await fetch(`${url}/readyz`)).status).toBe(200), { timeout: 5_000 });
});

test("a wrong setting is a clear line and exit 2", async () => {
  const server = start({ PORT: "eighty" });
  expect(await server.exited()).toBe(2);
  expect(server.stderr()).toMatch(/^vx: wrong setting\nPORT: /);
});

test.each([
  {
    what: "a wrong escape",
    env: { DATABASE_URL: "postgres://vx:100%ZZ@127.0.0.1/vx" },
    line: /^DATABASE_URL: has a %/,
  },
  {
    what: "a file that is no certificate",
    env: { VX_TLS_CERT: "package.json", VX_TLS_KEY: "package.json" },
    line: /^VX_TLS_CERT: holds no/,
  },
  {
    what: "more connections than can be",
    env: { VX_WORKERS: "64", VX_DATABASE_CONNECTIONS: "500" },
    line: /^VX_WORKERS, VX_DATABASE_CONNECTIONS/,
  },
])("$what is a clear line and exit 2", async ({ env, line }) => {
  const server = start(env as unknown as Record<string, string>);
  expect(await server.exited()).toBe(2);
  const [, problem, ...more] = server.stderr().trim().split("\n");
  expect(problem).toMatch(line);
  expect(more).toEqual([]);
});

test("the embedded database logs no row that the server could not write", async () => {
  const server = start();
  await server.line(ready);
  const role = postgres({ host: join(folder.path, "run"), username: "vx_app", database: "postgres" });
  const broken = role`SELECT vx.create_account(99::smallint, 'acct_1', 'name-of-a-customer', 'free')`;
  await expect(broken).rejects.toMatchObject({ detail: expect.stringContaining("name-of-a-customer") });
  await role.end();
  expect(await server.end("SIGTERM")).toBe(0);
  const logs = join(folder.path, "log");
  const text = readdirSync(logs).map((name) => readFileSync(join(logs, name), "utf8"));
  expect(text.join("")).toContain("violates check constraint");
  expect(text.join("")).not.toContain("Failing row");
});

test("the embedded database takes as many connections as the settings ask for, also one that was left running", async () => {
  const first = start();
  await first.line(ready);
  await first.end("SIGKILL");
  const second = start({ VX_DATABASE_CONNECTIONS: "150" });
  await second.line(ready);
  const owner = postgres({ host: join(folder.path, "run"), username: "postgres", database: "postgres" });
  const [row] = await owner`SELECT current_setting('max_connections')::int AS max`;
  await owner.end();
  expect(row?.max).toBeGreaterThan(160);
});

test("a port that is taken is a clear line and exit 1, and no database stays behind", async () => {
  const first = start();
  const { port } = new URL(await first.line(ready));
  const other = createTemporaryFolder("process");
  const second = startServerProcess({ VX_DATA_DIR: other.path, PORT: port });
  expect(await second.exited()).toBe(1);
  expect(second.stderr()).toContain(`port ${port} on 127.0.0.1 is in use`);
  expect(existsSync(join(other.path, "postgres", "postmaster.pid"))).toBe(false);
  other.remove();
});

test("a database that cannot be reached is one clear line and exit 1", async () => {
  const server = start({ DATABASE_URL: "postgres://nobody:secret@127.0.0.1:1/none" });
  expect(await server.exited()).toBe(1);
  expect(server.stderr().trim().split("\n")).toHaveLength(1);
  expect(server.stderr()).toMatch(/^vx: the database cannot be reached/);
  expect(server.stderr()).not.toContain("secret");
});

test("several workers share the port, and the metrics are of all of them", async () => {
  const server = start({ VX_WORKERS: "2", VX_ADMIN_TOKEN: "operator-token-of-the-tests" });
  const secret = await server.line(/(vx_live_\w+)/);
  const url = await server.line(ready);
  for (let i = 0; i < 20; i++) expect(await getMe(url, secret)).toMatchObject({ status: 200 });
  const admin = /"admin":"([^"]+)"/.exec(server.stderr())?.[1];
  const text = await (
    await fetch(`${admin}/metrics`, { headers: bearer("operator-token-of-the-tests") })
  ).text();
  expect(text).toContain('vx_calls_total{rpc="vx.v1.MeService/GetMe",protocol="connect",code="ok"} 20');
  expect(await server.end("SIGTERM")).toBe(0);
});

test("what a worker counted stays counted when it dies", async () => {
  const server = start({ VX_WORKERS: "2", VX_ADMIN_TOKEN: "operator-token-of-the-tests" });
  const secret = await server.line(/(vx_live_\w+)/);
  const url = await server.line(ready);
  const admin = /"admin":"([^"]+)"/.exec(server.stderr())?.[1];
  const headers = bearer("operator-token-of-the-tests");
  const read = async () => await (await fetch(`${admin}/metrics`, { headers })).text();
  const counted = 'vx_calls_total{rpc="vx.v1.MeService/GetMe",protocol="connect",code="ok"}';
  for (let i = 0; i < 20; i++) expect(await getMe(url, secret)).toMatchObject({ status: 200 });
  expect(await read()).toContain(`${counted} 20`);
  const pids = childrenOf(server.child.pid as number).filter((pid) => commandOf(pid).includes("vx.js"));
  expect(pids).toHaveLength(2);
  process.kill(pids[0] as number, "SIGKILL");
  expect(await read()).toContain(`${counted} 20`);
  await vi.waitFor(async () => expect(await getMe(url, secret)).toMatchObject({ status: 200 }), {
    timeout: 10_000,
  });
  const text = await read();
  expect(text).toContain(`${counted} 21`);
  // Of processes that are gone nothing runs.
  expect(text).toContain("vx_running_calls 0");
});

test("a data folder whose guard lost its connection is guarded again", async () => {
  const first = start();
  const secret = await first.line(/(vx_live_\w+)/);
  const url = await first.line(ready);
  const owner = postgres({ host: join(folder.path, "run"), username: "postgres", database: "postgres" });
  const guards = () => owner<{ pid: number }[]>`
    SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted AND objid = 7665121`;
  const [guard] = await guards();
  await owner`SELECT pg_terminate_backend(${guard?.pid as number})`;
  await vi.waitFor(
    async () => {
      const [again] = await guards();
      expect(again?.pid).toEqual(expect.any(Number));
      expect(again?.pid).not.toBe(guard?.pid);
    },
    { timeout: 5_000, interval: 50 },
  );
  await owner.end();
  const second = start();
  expect(await second.exited()).toBe(1);
  expect(second.stderr()).toContain(`is in use by vx server, process ${first.child.pid}`);
  expect(await getMe(url, secret)).toMatchObject({ status: 200 });
});

test("a server whose data folder was taken over goes on, and leaves the database running when it stops", async () => {
  const server = start();
  const url = await server.line(ready);
  const owner = postgres({ host: join(folder.path, "run"), username: "postgres", database: "postgres" });
  const other = await owner.reserve();
  const [guard] = await owner<{ pid: number }[]>`
    SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted AND objid = 7665121`;
  const taken = other`SELECT pg_advisory_lock(7665121)`;
  await owner`SELECT pg_terminate_backend(${guard?.pid as number})`;
  await taken;
  await vi.waitFor(() => expect(server.stderr()).toContain("another server has taken over the data folder"), {
    timeout: 5_000,
  });
  expect((await fetch(`${url}/readyz`)).status).toBe(200);
  expect(await server.end("SIGTERM")).toBe(0);
  expect(isAlive(postmasterPid())).toBe(true);
  other.release();
  await owner.end();
  // The next server finds it running and stops it in the end.
  const next = start();
  await next.line(ready);
  expect(await next.end("SIGTERM")).toBe(0);
});

function commandOf(pid: number): string {
  return readFileSync(`/proc/${pid}/cmdline`, "utf8");
}

function killFamily(postmaster: number): void {
  process.kill(postmaster, "SIGSTOP");
  for (const pid of childrenOf(postmaster)) process.kill(pid, "SIGKILL");
  process.kill(postmaster, "SIGKILL");
}

function childrenOf(pid: number): number[] {
  const path = `/proc/${pid}/task/${pid}/children`;
  return existsSync(path) ? readFileSync(path, "utf8").trim().split(" ").filter(Boolean).map(Number) : [];
}
