import { afterEach, describe, expect, test } from "vitest";
import { beginEndless, cleanUp, killProcessesIn, makeDataFolder, patient, processesIn, start } from "./support.ts";

afterEach(cleanUp);

describe("stop of the embedded database", patient, () => {
  test("ends all processes, including the log collector, and cancels running statements", async () => {
    const dataDir = await makeDataFolder();
    const server = await start(dataDir);
    expect((await processesIn(dataDir)).length).toBeGreaterThan(3);
    const sleeper = await beginEndless(server, "select pg_sleep(600)");
    await server.stop();
    expect(await sleeper.outcome).toBe("cut");
    expect(await processesIn(dataDir)).toEqual([]);
  });

  test("can be called twice, and after the postmaster has exited", async () => {
    const dataDir = await makeDataFolder();
    const server = await start(dataDir);
    await killProcessesIn(dataDir);
    await Promise.all([server.stop(), server.stop()]);
    await server.stop();
    expect(await processesIn(dataDir)).toEqual([]);
  });

  test("is final: ensureRunning rejects afterwards", async () => {
    const dataDir = await makeDataFolder();
    const server = await start(dataDir);
    const restart = server.ensureRunning();
    const stop = server.stop();
    await expect(server.ensureRunning()).rejects.toThrow("was stopped");
    await Promise.all([restart, stop]);
    expect(await processesIn(dataDir)).toEqual([]);
  });
});
