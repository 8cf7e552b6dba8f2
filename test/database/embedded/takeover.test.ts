import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { putDatabase } from "../../support/data-folder.ts";
import {
  cleanUp,
  eventually,
  launchOwner,
  makeDataFolder,
  makeFolder,
  patient,
  postmasterPid,
  processesIn,
  query,
  start,
} from "./support.ts";

const bystanders: ChildProcess[] = [];

afterEach(async () => {
  for (const bystander of bystanders.splice(0)) bystander.kill();
  await cleanUp();
});

async function spawnBystander(): Promise<number> {
  const child = spawn(process.execPath, ["-e", "setInterval(() => {}, 60000)"], { stdio: "ignore" });
  bystanders.push(child);
  await once(child, "spawn");
  return child.pid ?? 0;
}

describe("leftovers of an earlier server", patient, () => {
  test("a postmaster is adopted after its server's process group was killed", async () => {
    const dataDir = await makeDataFolder();
    const owner = await launchOwner(dataDir).ready;
    expect(owner.report).toMatchObject({ adopted: false });
    const pid = await postmasterPid(owner.report);
    await owner.kill();

    const server = await start(dataDir);
    expect(server.adopted).toBe(true);
    expect(await postmasterPid(server)).toBe(pid);
    expect(await query(server, "select 1 as one")).toEqual([{ one: 1 }]);
    await server.stop();
    expect(await processesIn(dataDir)).toEqual([]);
  });

  test("a stale file is removed although its pid belongs to another program now", async () => {
    const dataDir = await makeDataFolder();
    let server = await start(dataDir);
    const pidFile = join(server.clusterDir, "postmaster.pid");
    const socketLock = join(server.socketDir, ".s.PGSQL.5432.lock");
    const bystander = await spawnBystander();
    for (const path of [pidFile, socketLock]) {
      const text = await readFile(path, "utf8");
      await server.stop();
      await writeFile(path, text.replace(/^\d+/, String(bystander)));
      server = await start(dataDir);
      expect(server.adopted, path).toBe(false);
      expect(await query(server, "select 1 as one")).toEqual([{ one: 1 }]);
    }
    await server.stop();
    expect(() => process.kill(bystander, 0)).not.toThrow();
    // As after a power failure.
    await writeFile(pidFile, "");
    expect(await start(dataDir)).toMatchObject({ adopted: false });
  });

  test("a start waits for a postmaster that is shutting down, then launches a new one", async () => {
    const dataDir = await makeDataFolder();
    const server = await start(dataDir);
    const pid = await postmasterPid(server);
    process.kill(pid, "SIGINT");
    const again = await start(dataDir);
    expect(await query(again, "select 1 as one")).toEqual([{ one: 1 }]);
    expect(await postmasterPid(again)).not.toBe(pid);
    // Without its socket, it is restarted.
    await rm(again.socketDir, { recursive: true });
    const third = await start(dataDir);
    expect(await query(third, "select 1 as one")).toEqual([{ one: 1 }]);
  });

  test("a new database replaces one whose folder was deleted while it ran", async () => {
    const dataDir = join(await makeFolder(), "data");
    putDatabase(dataDir);
    const server = await start(dataDir);
    const pid = await postmasterPid(server);
    await query(server, "create table old ()");
    await rm(dataDir, { recursive: true });
    const again = await start(dataDir);
    expect(await query(again, "select to_regclass('old') as old")).toEqual([{ old: null }]);
    process.kill(pid, "SIGQUIT");
    await eventually(async () => (await processesIn(dataDir)).every((other) => other !== pid));
  });
});
