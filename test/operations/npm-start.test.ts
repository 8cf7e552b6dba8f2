import { expect, test, vi } from "vitest";
import { createTestDatabase } from "../support/database.ts";
import { childrenOf, isAlive, ready, start, useDataFolder } from "./server-process.ts";

useDataFolder();

test.each(["SIGTERM", "SIGINT"] as const)(
  "%s to the process of npm start stops the server, and the exit code is 0",
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

test("the exit code of npm start is that of the server", async () => {
  const npm = start({ PORT: "eighty" }, { command: ["npm", "start"] });
  expect(await npm.exited()).toBe(2);
});

test("a Node that is too old starts the right one, and passes signals and the exit code on", async () => {
  const database = await createTestDatabase();
  // It claims to be old once; the process that it starts tells the truth.
  const old = `data:text/javascript,${encodeURIComponent(`
    if (process.env.CLAIMS_TO_BE_OLD) {
      delete process.env.CLAIMS_TO_BE_OLD;
      Object.defineProperty(process, "versions", { value: { ...process.versions, node: "20.0.0" } });
    }`)}`;
  const launcher = start({
    DATABASE_URL: database.url,
    CLAIMS_TO_BE_OLD: "1",
    NODE_OPTIONS: `--import ${old}`,
  });
  await launcher.line(ready);
  const [server = 0] = childrenOf(launcher.child.pid as number);
  expect(await launcher.end("SIGTERM")).toBe(0);
  await vi.waitFor(() => expect(isAlive(server)).toBe(false));
  expect(launcher.stderr()).toContain('"msg":"stopped"');
  await database.drop();
});
