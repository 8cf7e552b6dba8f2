import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import postgres from "postgres";
import { expect, test, vi } from "vitest";
import { TEST_CALLER } from "../support/action.ts";
import { loginIn } from "../support/embedded.ts";
import {
  childrenOf,
  getMe,
  inDataFolder,
  isAlive,
  postmasterPid,
  ready,
  start,
  startHere,
  useDataFolder,
} from "./server-process.ts";

useDataFolder({ withDatabase: true });

test("a data folder has one server; after kill -9 the next one reuses the database without data loss, with more connections", async () => {
  const first = start();
  const secret = await first.line(/(vx_live_\w+)/);
  const url = await first.line(ready);
  await expect(startHere().started).rejects.toThrow(`is in use by vx server, process ${first.child.pid}`);
  expect(await getMe(url, secret)).toMatchObject({ status: 200 });
  expect(await first.end("SIGKILL")).toBe("SIGKILL");

  const second = startHere({ VX_DATABASE_CONNECTIONS: "200" });
  expect(await getMe((await second.started).url, secret)).toMatchObject({ status: 200 });
  const owner = postgres(loginIn(inDataFolder()));
  const [row] = await owner`SELECT current_setting('max_connections')::int AS max`;
  await owner.end();
  expect(row?.max).toBeGreaterThan(200);
  const postmaster = postmasterPid();
  await second.end();
  expect(isAlive(postmaster)).toBe(false);
});

test("an embedded database that is killed with all its children is restarted, and logs no rows", async () => {
  const server = startHere();
  const { url } = await server.started;
  const secret = server.demoKey();
  killFamily(postmasterPid());
  // Until it is restarted, calls get 503, not 401.
  await vi.waitFor(
    async () => {
      const { status } = await getMe(url, secret);
      expect([200, 503]).toContain(status);
      expect(status).toBe(200);
    },
    { timeout: 15_000, interval: 50 },
  );
  await vi.waitFor(async () => expect((await fetch(`${url}/readyz`)).status).toBe(200));
  // Its log has no rows that failed to be written.
  const role = postgres(loginIn(inDataFolder(), "vx_app"));
  const broken = role`SELECT vx.put_plan(${TEST_CALLER}, 'name-of-a-customer', 0, 1, 1)`;
  await expect(broken).rejects.toMatchObject({ detail: expect.stringContaining("name-of-a-customer") });
  await role.end();
  await server.end();
  const logs = inDataFolder("log");
  const text = readdirSync(logs).map((name) => readFileSync(join(logs, name), "utf8"));
  expect(text.join("")).toContain("violates check constraint");
  expect(text.join("")).not.toContain("Failing row");
});

test("the lock of a data folder is renewed after it lost its connection; a server that lost it continues, and leaves the database running", async () => {
  const server = startHere();
  const { url } = await server.started;
  const owner = postgres(loginIn(inDataFolder()));
  const lockHolder = async () => {
    const [holder] = await owner<{ pid: number }[]>`
      SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted AND objid = 7665121`;
    return holder?.pid;
  };
  const first = await lockHolder();
  await owner`SELECT pg_terminate_backend(${first as number})`;
  await expect.poll(async () => ((await lockHolder()) ?? first) !== first).toBe(true);
  await expect(startHere().started).rejects.toThrow(`is in use by vx server, process ${process.pid}`);
  expect(await getMe(url, server.demoKey())).toMatchObject({ status: 200 });

  const other = await owner.reserve();
  const second = await lockHolder();
  const taken = other`SELECT pg_advisory_lock(7665121)`;
  await owner`SELECT pg_terminate_backend(${second as number})`;
  await taken;
  await vi.waitFor(() => expect(server.logText()).toContain("another server uses the data folder too"));
  expect((await fetch(`${url}/readyz`)).status).toBe(200);
  await server.end();
  const postmaster = postmasterPid();
  expect(isAlive(postmaster)).toBe(true);
  other.release();
  await owner.end();
  process.kill(postmaster, "SIGINT");
  await vi.waitFor(() => expect(isAlive(postmaster)).toBe(false));
});

function killFamily(postmaster: number): void {
  process.kill(postmaster, "SIGSTOP");
  for (const pid of childrenOf(postmaster)) process.kill(pid, "SIGKILL");
  process.kill(postmaster, "SIGKILL");
}
