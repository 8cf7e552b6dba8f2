import { expect, test, vi } from "vitest";
import { createTestDatabase } from "../support/database.ts";
import { childrenOf, isAlive, ready, start, useDataFolder } from "./server-process.ts";

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

test("an old Node version starts the bundled one and forwards signals and the exit code", async () => {
  const database = await createTestDatabase();
  // Only the first process reports an old version.
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
