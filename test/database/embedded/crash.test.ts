import { afterEach, describe, expect, test } from "vitest";
import {
  beginEndless,
  cleanUp,
  killProcessesIn,
  makeDataFolder,
  patient,
  postmasterPid,
  processesIn,
  query,
  start,
} from "./support.ts";

afterEach(cleanUp);

describe("after a crash of the database", patient, () => {
  test("ensureRunning does nothing while the database runs, and several restart a killed one once, with all commits", async () => {
    const events = ["exit", "beforeExit", "SIGINT", "SIGTERM", "SIGHUP"];
    const handlers = () => events.map((name) => process.listenerCount(name));
    const before = handlers();
    const dataDir = await makeDataFolder();
    const server = await start(dataDir);
    expect(handlers()).toEqual(before);
    const pid = await postmasterPid(server);
    await server.ensureRunning();
    expect(await postmasterPid(server)).toBe(pid);
    await query(server, "create table kept as select 42 as answer");
    await killProcessesIn(dataDir);

    await Promise.all([server.ensureRunning(), server.ensureRunning(), server.ensureRunning()]);
    expect(await query(server, "select answer from kept")).toEqual([{ answer: 42 }]);
  });

  test("a child process that survives its postmaster does not block the restart", async () => {
    const dataDir = await makeDataFolder();
    const server = await start(dataDir);
    const endless = await beginEndless(server, "select count(*) from generate_series(1, 100000000000) as n");
    process.kill(await postmasterPid(server), "SIGKILL");

    await server.ensureRunning();
    expect(await query(server, "select 1 as one")).toEqual([{ one: 1 }]);
    expect(await endless.outcome).toBe("cut");
    await server.stop();
    expect(await processesIn(dataDir)).toEqual([]);
  });

  test("a new server process starts the database after its postmaster was killed", async () => {
    const dataDir = await makeDataFolder();
    const server = await start(dataDir);
    process.kill(await postmasterPid(server), "SIGKILL");
    const again = await start(dataDir);
    expect(await query(again, "select 1 as one")).toEqual([{ one: 1 }]);
  });
});
