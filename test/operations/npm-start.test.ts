import { describe, expect, test, vi } from "vitest";
import { createTestDatabase } from "../support/database.ts";
import { childrenOf, isAlive, ready, start, useDataFolder, workersOf } from "./server-process.ts";

useDataFolder();

test.each(["SIGTERM", "SIGINT"] as const)(
  "%s to npm start stops the server with exit code 0",
  async (signal) => {
    const database = await createTestDatabase();
    const npm = start({ DATABASE_URL: database.url }, { command: ["npm", "start"] });
    await npm.line(ready);
    const servers = childrenOf(npm.child.pid as number);
    expect(servers).toHaveLength(1);
    expect(await npm.end(signal)).toBe(0);
    expect(servers.filter(isAlive)).toEqual([]);
    expect(npm.stderr()).toContain('"msg":"stopped"');
    await database.drop();
  },
);

test("npm start exits with the exit code of the server", async () => {
  const npm = start({ PORT: "eighty" }, { command: ["npm", "start"] });
  expect(await npm.exited()).toBe(2);
});

describe("an old Node version starts the bundled one", () => {
  // Only the first process reports an old version.
  const old = `data:text/javascript,${encodeURIComponent(`
    if (process.env.CLAIMS_TO_BE_OLD) {
      delete process.env.CLAIMS_TO_BE_OLD;
      Object.defineProperty(process, "versions", { value: { ...process.versions, node: "20.0.0" } });
    }`)}`;
  const env = { CLAIMS_TO_BE_OLD: "1", NODE_OPTIONS: `--import ${old}` };

  test.each([
    ["SIGTERM", 0],
    ["SIGKILL", "SIGKILL"],
  ] as const)("which stops after %s to the launcher, whose exit code is %s", async (signal, expected) => {
    const database = await createTestDatabase();
    const launcher = start({ DATABASE_URL: database.url, VX_WORKERS: "2", ...env });
    await launcher.line(ready);
    const [server = 0] = childrenOf(launcher.child.pid as number);
    const processes = [server, ...workersOf(server)];
    expect(processes).toHaveLength(3);
    expect(await launcher.end(signal)).toBe(expected);
    await vi.waitFor(() => expect(processes.filter(isAlive)).toEqual([]));
    await vi.waitFor(() => expect(launcher.stderr()).toContain('"msg":"stopped"'));
    await database.drop();
  });

  test("whose commands end although the channel to the launcher is open", async () => {
    const launcher = start(env, { command: [process.execPath, "src/vx.js", "models", "--help"] });
    expect(await launcher.exited()).toBe(0);
  });
});
