import { once } from "node:events";
import { existsSync, readFileSync, statSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { expect, test } from "vitest";
import { readConfig } from "../../src/app/settings/config.ts";
import { ConfigError } from "../../src/app/start-error.ts";
import { putDatabase } from "../support/data-folder.ts";
import { createTestDatabase } from "../support/database.ts";
import { SERVER, type ServerProcess } from "../support/process.ts";
import { started } from "../support/started.ts";
import { getMe, inDataFolder, isAlive, postmasterPid, ready, start, startHere, useDataFolder } from "./server-process.ts";

useDataFolder();

const database = started(() => createTestDatabase());

test("the first start creates a demo key and an operator token that stay valid, and a stop leaves no process", async () => {
  const first = start();
  const secret = await first.line(/(vx_live_\w+)/);
  const url = await first.line(ready);
  expect(first.stdout().trim().split("\n").at(-1)).toBe(`vx ready on ${url}`);
  expect(first.stdout()).toContain("curl ");
  expect(await getMe(url, secret)).toMatchObject({
    status: 200,
    body: { keyName: "demo", balance: "$10.00" },
  });
  const tokenFile = inDataFolder("admin-token");
  expect(statSync(tokenFile).mode & 0o777).toBe(0o600);
  const token = readFileSync(tokenFile, "utf8");
  expect(token.trim()).toMatch(/^[\w-]{43}$/);
  await expectCleanEnd(first, "SIGTERM");
  expect(first.stderr()).not.toContain(secret);

  const second = start();
  expect(await getMe(await second.line(ready), secret)).toMatchObject({
    status: 200,
    body: { balance: "$10.00" },
  });
  expect(second.stdout()).not.toContain("vx_live_");
  expect(readFileSync(tokenFile, "utf8")).toBe(token);
  await expectCleanEnd(second, "SIGINT");
});

test("with --json, a start prints JSON lines, and without files to reload, SIGHUP stops the server as SIGTERM does", async () => {
  const env = { DATABASE_URL: database.url, VX_SEED_DEMO: "1" };
  const server = start(env, { command: [process.execPath, SERVER, "serve", "--json"] });
  const url = await server.line(/"url":"([^"]+)"/);
  const lines = server
    .stdout()
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Record<string, string>);
  const { demo_key: secret = "" } = lines.at(-2) ?? {};
  expect(lines.at(-1)).toMatchObject({ message: `vx ready on ${url}`, admin_url: expect.any(String) });
  expect(await getMe(url, secret)).toMatchObject({ status: 200, body: { keyName: "demo" } });
  const line = server.stderr().match(/^.*"operator listener is open".*$/m)?.[0] ?? "";
  expect(JSON.parse(line)).toMatchObject({ pid: server.child.pid });
  expect(await server.end("SIGHUP")).toBe(0);
  expect(server.stderr()).toContain('"msg":"stopped"');
});

async function expectCleanEnd(server: ServerProcess, signal: NodeJS.Signals): Promise<void> {
  const postmaster = postmasterPid();
  expect(isAlive(postmaster)).toBe(true);
  expect(await server.end(signal)).toBe(0);
  expect(isAlive(postmaster)).toBe(false);
  expect(existsSync(inDataFolder("postgres", "postmaster.pid"))).toBe(false);
}

test.each([
  {
    what: "a wrong escape",
    env: { DATABASE_URL: "postgres://vx:100%ZZ@127.0.0.1/vx" },
    line: /^DATABASE_URL: has a %/,
  },
  {
    what: "a file that is no certificate",
    env: { VX_TLS_CERT: "package.json", VX_TLS_KEY: "package.json" },
    line: /^VX_TLS_CERT: must contain/,
  },
  {
    what: "one port for both listeners",
    env: { PORT: "18080", VX_ADMIN_PORT: "18080" },
    line: /^PORT, VX_ADMIN_PORT: both listeners would use port 18080; /,
  },
  {
    what: "an origin with a path",
    env: { VX_CORS_ORIGINS: "https://app.example.com,https://example.com/app" },
    line: /^VX_CORS_ORIGINS: "https:\/\/example\.com\/app" is not an origin; /,
  },
  {
    what: "more connections than can be",
    env: { VX_WORKERS: "64", VX_DATABASE_CONNECTIONS: "500" },
    line: /^VX_WORKERS, VX_DATABASE_CONNECTIONS/,
  },
])("$what is a clear line", ({ env, line }) => {
  const [problem, ...more] = linesOf(errorOf(() => readConfig(env as unknown as Record<string, string>)));
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

test("a port in use exits 1 with a one-line error, and the database is stopped", async () => {
  const other = createServer().listen(0, "127.0.0.1");
  await once(other, "listening");
  const { port } = other.address() as AddressInfo;
  putDatabase(inDataFolder());
  const server = start({ PORT: String(port) });
  expect(await server.exited()).toBe(1);
  expect(server.stderr()).toContain(
    `vx: PORT: port ${port} on 127.0.0.1 is in use by another program; stop it, or set PORT to a free port`,
  );
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
