import { once } from "node:events";
import { existsSync, readFileSync, statSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { expect, test } from "vitest";
import { readConfig } from "../../src/app/settings/config.ts";
import { ConfigError, StartError } from "../../src/app/start-error.ts";
import { putDatabase } from "../support/data-folder.ts";
import { createTestDatabase } from "../support/database.ts";
import { SERVER } from "../support/process.ts";
import { started } from "../support/started.ts";
import { getMe, inDataFolder, isAlive, postmasterPid, start, startHere, useDataFolder } from "./server-process.ts";

useDataFolder();

const database = started(() => createTestDatabase());

test("the first start creates a demo key and an operator token that stay valid; without files to reload, SIGHUP stops it cleanly", async () => {
  const first = start({}, { command: [process.execPath, SERVER, "serve", "--json"] });
  const url = await first.line(/"url":"([^"]+)"/);
  const lines = first.stdout().trim().split("\n");
  const printed = lines.map((line) => JSON.parse(line) as Record<string, string>);
  expect(printed.at(-1)).toMatchObject({ message: `vx ready on ${url}`, admin_url: expect.any(String) });
  const { demo_key: secret = "", message } = printed.at(-2) ?? {};
  expect(message).toContain("curl ");
  expect(await getMe(url, secret)).toMatchObject({ status: 200, body: { keyName: "demo", balance: "$10.00" } });
  const listening = first.stderr().match(/^.*"operator listener is open".*$/m)?.[0] ?? "";
  expect(JSON.parse(listening)).toMatchObject({ pid: first.child.pid });
  const tokenFile = inDataFolder("admin-token");
  expect(statSync(tokenFile).mode & 0o777).toBe(0o600);
  const token = readFileSync(tokenFile, "utf8");
  expect(token.trim()).toMatch(/^[\w-]{43}$/);
  const postmaster = postmasterPid();
  expect(isAlive(postmaster)).toBe(true);
  expect(await first.end("SIGHUP")).toBe(0);
  expect(isAlive(postmaster)).toBe(false);
  expect(existsSync(inDataFolder("postgres", "postmaster.pid"))).toBe(false);
  expect(first.stderr()).toContain('"msg":"stopped"');
  expect(first.stderr()).not.toContain(secret);

  const second = startHere();
  expect(await getMe((await second.started).url, secret)).toMatchObject({ status: 200, body: { balance: "$10.00" } });
  expect(second.printed.join("")).not.toContain("vx_live_");
  expect(readFileSync(tokenFile, "utf8")).toBe(token);
});

test.each<[string, NodeJS.ProcessEnv, RegExp]>([
  ["a wrong escape", { DATABASE_URL: "postgres://vx:100%ZZ@127.0.0.1/vx" }, /^DATABASE_URL: has a %/],
  ["a file that is no certificate", { VX_TLS_CERT: "package.json", VX_TLS_KEY: "package.json" }, /^VX_TLS_CERT: must contain/],
  [
    "one port for both listeners",
    { PORT: "18080", VX_ADMIN_PORT: "18080" },
    /^PORT, VX_ADMIN_PORT: both .* would use port 18080; /,
  ],
  ["too many connections", { VX_WORKERS: "64", VX_DATABASE_CONNECTIONS: "500" }, /^VX_WORKERS, VX_DATABASE_CONNECTIONS/],
])("%s is a clear line", (_, env, line) => {
  const [problem, ...more] = linesOf(errorOf(() => readConfig(env)));
  expect(problem).toMatch(line);
  expect(more).toEqual([]);
});

function errorOf(read: () => unknown): unknown {
  try {
    return read();
  } catch (error) {
    return error;
  }
}

/** The lines that `vx serve` prints below "invalid settings". */
function linesOf(error: unknown): string[] {
  expect(error).toBeInstanceOf(ConfigError);
  return (error as Error).message.split("\n");
}

test("a port in use is a one-line error, and the database is stopped", async () => {
  const other = createServer().listen(0, "127.0.0.1");
  await once(other, "listening");
  const { port } = other.address() as AddressInfo;
  putDatabase(inDataFolder());
  const { started } = startHere({ PORT: String(port) });
  const problem = `PORT: port ${port} on 127.0.0.1 is in use by another program; stop it, or set PORT to a free port`;
  await expect(started).rejects.toThrow(new StartError(problem));
  expect(existsSync(inDataFolder("postgres", "postmaster.pid"))).toBe(false);
  other.close();
});

test.each(["VX_ADMIN_HOST", "VX_HOST"])(
  "an address of another machine in %s is an error that names the setting",
  async (name) => {
    const server = startHere({ DATABASE_URL: database.url, [name]: "192.0.2.1" });
    const error = await server.started.catch((problem: unknown) => problem);
    expect(linesOf(error)[0]).toContain(`${name}: 192.0.2.1 is not an address of this machine; `);
  },
);

test("an address of another machine exits 2 with workers too", async () => {
  const server = start({ DATABASE_URL: database.url, VX_WORKERS: "2", VX_HOST: "192.0.2.1" });
  expect(await server.exited()).toBe(2);
  expect(server.stderr()).toMatch(/^VX_HOST: 192\.0\.2\.1 is not an address of this machine; /m);
});

test.each([
  ["is a file", "package.json", /^VX_DATA_DIR: \S+admin-token cannot be (read|written): not a directory/],
  ["the file system does not accept", "/proc/vx/data", /^VX_DATA_DIR: \S+admin-token cannot be written: no such/],
])("a data folder that %s is a clear line", async (_, folder, line) => {
  const error = await startHere({ VX_DATA_DIR: folder }).started.catch((problem: unknown) => problem);
  const [problem, ...more] = linesOf(error);
  expect(problem).toMatch(line);
  expect(more).toEqual([]);
});
