import { describe, expect, test, vi } from "vitest";
import { createTestDatabase } from "../support/database.ts";
import { started } from "../support/started.ts";
import { childrenOf, isAlive, ready, start, useDataFolder, workersOf } from "./server-process.ts";

useDataFolder();

const database = started(() => createTestDatabase());

test("SIGTERM to npm start stops the server with exit code 0", async () => {
  const npm = start({ DATABASE_URL: database.url }, { command: ["npm", "start"] });
  await npm.line(ready);
  const servers = childrenOf(npm.child.pid as number);
  expect(servers).toHaveLength(1);
  expect(await npm.end("SIGTERM")).toBe(0);
  expect(servers.filter(isAlive)).toEqual([]);
  expect(npm.stderr()).toContain('"msg":"stopped"');
});

test("npm start exits with the exit code of the server", async () => {
  const npm = start({ PORT: "eighty" }, { command: ["npm", "start"] });
  expect(await npm.exited()).toBe(2);
  expect(npm.stderr()).toMatch(/^vx: invalid settings\nPORT: /m);
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
    ["SIGTERM", 0, 1],
    ["SIGKILL", "SIGKILL", 2],
  ] as const)("which stops after %s to the launcher, whose exit code is %s", async (signal, expected, workers) => {
    const launcher = start({ DATABASE_URL: database.url, VX_WORKERS: `${workers}`, ...env });
    await launcher.line(ready);
    const [server = 0] = childrenOf(launcher.child.pid as number);
    const processes = [server, ...workersOf(server)];
    expect(processes).toHaveLength(workers === 1 ? 1 : 1 + workers);
    expect(await launcher.end(signal)).toBe(expected);
    await vi.waitFor(() => expect(processes.filter(isAlive)).toEqual([]));
    await vi.waitFor(() => expect(launcher.stderr()).toContain('"msg":"stopped"'));
  });

  test("whose commands end although the channel to the launcher is open", async () => {
    const launcher = start(env, { command: [process.execPath, "src/vx.js", "models", "--help"] });
    expect(await launcher.exited()).toBe(0);
  });
});
