import { afterEach, describe, expect, test } from "vitest";
import {
  beginEndless,
  cleanUp,
  makeFolder,
  patient,
  postmasterPid,
  processesIn,
  query,
  start,
} from "./support.ts";

afterEach(cleanUp);

describe("after the database itself was killed", patient, () => {
  test("ensureRunning does nothing while it runs", async () => {
    const server = await start(await makeFolder());
    const pid = await postmasterPid(server);
    await server.ensureRunning();
    expect(await postmasterPid(server)).toBe(pid);
  });

  test("postmaster and children killed: many callers of ensureRunning get one that has all commits", async () => {
    const dataDir = await makeFolder();
    const server = await start(dataDir);
    await query(server, "create table kept as select 42 as answer");
    for (const pid of await processesIn(dataDir)) process.kill(pid, "SIGKILL");

    await Promise.all([server.ensureRunning(), server.ensureRunning(), server.ensureRunning()]);
    expect(await query(server, "select answer from kept")).toEqual([{ answer: 42 }]);
  });

  test("a child that goes on computing without its postmaster does not stand in the way", async () => {
    const dataDir = await makeFolder();
    const server = await start(dataDir);
    const endless = await beginEndless(server, "select count(*) from generate_series(1, 100000000000) as n");
    process.kill(await postmasterPid(server), "SIGKILL");

    await server.ensureRunning();
    expect(await query(server, "select 1 as one")).toEqual([{ one: 1 }]);
    expect(await endless.outcome).toBe("cut");
    await server.stop();
    expect(await processesIn(dataDir)).toEqual([]);
  });

  test("a killed postmaster and a server that starts anew", async () => {
    const dataDir = await makeFolder();
    const server = await start(dataDir);
    process.kill(await postmasterPid(server), "SIGKILL");
    const again = await start(dataDir);
    expect(await query(again, "select 1 as one")).toEqual([{ one: 1 }]);
  });

  test("the supervisor adds no handler to the process", async () => {
    const events = ["exit", "beforeExit", "SIGINT", "SIGTERM", "SIGHUP"];
    const before = events.map((name) => process.listenerCount(name));
    await start(await makeFolder());
    expect(events.map((name) => process.listenerCount(name))).toEqual(before);
  });
});
