import { createServer, type Server } from "node:net";
import { afterAll, beforeAll, expect, inject, test, vi } from "vitest";
import { DatabaseWait, StartInterrupted } from "../../src/app/database-wait.ts";
import { readConfig } from "../../src/app/settings/config.ts";
import { createLog } from "../../src/telemetry/log.ts";
import { type CellDatabase, createTwoCells, writeCellsFile } from "../support/cells.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { type SocketProxy, startSocketProxy } from "../support/socket-proxy.ts";
import { createTemporaryFolder } from "../support/temporary-folder.ts";
import { unusedPort } from "../support/unused-port.ts";
import { start, startHere, useDataFolder } from "./server-process.ts";

useDataFolder();

const folder = createTemporaryFolder("wait");
let database: TestDatabase;
let proxy: SocketProxy;

beforeAll(async () => {
  database = await createTestDatabase();
  proxy = await startSocketProxy(folder.path, inject("socketDir"));
});
afterAll(async () => {
  await proxy.sever();
  await database.drop();
  folder.remove();
});

type Waiting = {
  readonly urls: readonly [string, string];
  readonly log: () => string;
  /** Resolves to the address of the public listener. */
  readonly ready: () => Promise<string>;
  readonly end: () => Promise<void>;
};

async function startOnPorts(env: Record<string, string>): Promise<Waiting> {
  const [port, adminPort] = [await unusedPort(), await unusedPort()];
  const settings = { PORT: String(port), VX_ADMIN_PORT: String(adminPort), VX_DATABASE_WAIT: "3600", ...env };
  const { started, logText, end } = startHere(settings);
  const urls = [`http://127.0.0.1:${port}`, `http://127.0.0.1:${adminPort}`] as const;
  return { urls, log: logText, end, ready: async () => (await started).url };
}

const statusOf = async (url: string) => (await fetch(url)).status;
const waits = ({ log }: Pick<Waiting, "log">) => log().match(/"waiting for the database"/g)?.length ?? 0;

async function isWaiting(server: Waiting) {
  await vi.waitFor(() => expect(waits(server)).toBeGreaterThan(1), { timeout: 30_000 });
  const { urls } = server;
  for (const url of urls) {
    expect(await statusOf(`${url}/livez`)).toBe(200);
    expect(await statusOf(`${url}/readyz`)).toBe(503);
  }
}

test("the start waits for a database that does not answer, and answers probes", async () => {
  await proxy.sever();
  const server = await startOnPorts({ DATABASE_URL: proxy.urlOf(database.url) });
  await isWaiting(server);
  const [url] = server.urls;
  const refused = await fetch(`${url}/v1/me`);
  expect(refused.status).toBe(503);
  expect(await refused.json()).toMatchObject({ error: { code: "unavailable" } });
  await proxy.restore();
  expect(await server.ready()).toBe(url);
  expect(await statusOf(`${url}/readyz`)).toBe(200);
  expect(await statusOf(`${url}/v1/me`)).toBe(401);
  await server.end();
});

test("the start waits for the cells while none of them answers", async () => {
  const cells: readonly CellDatabase[] = await createTwoCells();
  await proxy.sever();
  const places = cells.map((cell) => ({ ...cell, url: proxy.urlOf(cell.url) }));
  const server = await startOnPorts({ VX_CELLS: writeCellsFile(folder.path, places) });
  await isWaiting(server);
  await proxy.restore();
  const url = await server.ready();
  await vi.waitFor(async () => expect(await (await fetch(`${url}/readyz`)).text()).toBe("ready\n"), {
    timeout: 30_000,
  });
  await server.end();
  for (const cell of cells) await cell.drop();
});

test("a signal that came before the wait ends it too", async () => {
  const wait = new DatabaseWait({
    config: readConfig({}),
    log: createLog("silent"),
    stopSignal: AbortSignal.abort(),
    openProbes: async () => async () => undefined,
  });
  await expect(wait.until(() => new Promise(() => undefined))).rejects.toThrow(StartInterrupted);
});

/** A database in which prices are registered so many times; then this fails as on a full disk. */
async function databaseFullAfter(count: number) {
  const own = await createTestDatabase();
  await own.owner.unsafe(`
    CREATE SEQUENCE public.calls;
    ALTER FUNCTION vx.register_prices RENAME TO register;
    CREATE FUNCTION vx.register_prices(p_items vx.price_item[]) RETURNS TABLE (model text, version integer)
      LANGUAGE plpgsql SECURITY DEFINER AS $$
    BEGIN
      IF nextval('public.calls') > ${count} THEN
        RAISE EXCEPTION 'No space left on device' USING ERRCODE = '53100';
      END IF;
      RETURN QUERY SELECT * FROM vx.register(p_items);
    END $$;`);
  return own;
}

test("SIGTERM ends the wait of the worker processes, with exit code 0", async () => {
  const own = await databaseFullAfter(1);
  const server = start({ DATABASE_URL: own.url, VX_WORKERS: "2", VX_DATABASE_WAIT: "3600" });
  await vi.waitFor(() => expect(waits({ log: server.stderr })).toBeGreaterThan(0), { timeout: 30_000 });
  expect(await server.end("SIGTERM")).toBe(0);
  await own.drop();
});

test("the start waits while the disk of the database is full", async () => {
  const own = await createTestDatabase();
  await own.owner.unsafe(`CREATE FUNCTION public.refuse() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN RAISE EXCEPTION 'No space left on device' USING ERRCODE = '53100'; END $$`);
  await own.owner`CREATE TRIGGER refuse BEFORE INSERT ON vx.write_probes FOR EACH ROW EXECUTE FUNCTION public.refuse()`;
  const server = await startOnPorts({ DATABASE_URL: own.url });
  await isWaiting(server);
  await own.owner`DROP TRIGGER refuse ON vx.write_probes`;
  await server.ready();
  await server.end();
  await own.drop();
});

/** A PostgreSQL that answers each connection with one error. */
async function refusingServer(code: string): Promise<{ server: Server; url: string }> {
  const fields = ["SFATAL", "VFATAL", `C${code}`, `Mrefused with ${code}`].map((field) => `${field}\0`);
  const body = Buffer.from(`${fields.join("")}\0`);
  const head = Buffer.alloc(5);
  head.write("E");
  head.writeInt32BE(body.length + 4, 1);
  const server = createServer((socket) => {
    socket.on("error", () => undefined);
    socket.once("data", () => socket.end(Buffer.concat([head, body])));
  });
  const port = await unusedPort();
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  return { server, url: `postgres://vx@127.0.0.1:${port}/vx` };
}

test.each([
  ["is starting", "57P03"],
  ["has too many connections", "53300"],
])("the start waits for a database that %s", async (_, code) => {
  const fake = await refusingServer(code);
  const server = await startOnPorts({ DATABASE_URL: fake.url });
  await isWaiting(server);
  expect(server.log()).toContain(`refused with ${code}`);
  await endsInterrupted(server);
  fake.server.close();
});

test("the start waits for a name that DNS does not know yet", async () => {
  const server = await startOnPorts({ DATABASE_URL: "postgres://vx@db.invalid/vx" });
  await isWaiting(server);
  await endsInterrupted(server);
});

/** The stop ends the wait itself. */
async function endsInterrupted(server: Waiting): Promise<void> {
  await server.end();
  await expect(server.ready()).rejects.toThrow(StartInterrupted);
}

test("the wait ends after VX_DATABASE_WAIT", async () => {
  const env = { DATABASE_URL: "postgres://nobody@127.0.0.1:1/none", VX_DATABASE_WAIT: "1" };
  const server = await startOnPorts(env);
  await expect(server.ready()).rejects.toThrow(/^the database cannot be reached/);
  expect(waits(server)).toBeGreaterThan(0);
});

test.each([
  ["a wrong password", (url: string) => url.replace(/password=.*/, "password=wrong"), "check the user and the password"],
  ["a database that does not exist", (url: string) => url.replace(/\/t_\w+/, "/missing"), "create the database"],
])("the start does not wait with %s, and says what to do", async (_, change, advice) => {
  await failsAtOnce({ DATABASE_URL: change(database.url) }, advice);
});

test("the start does not wait for a schema that this login cannot create", async () => {
  const empty = await createTestDatabase({ template: "template1" });
  const role = `reader_${process.pid}`;
  await empty.owner.unsafe(`CREATE ROLE ${role} LOGIN PASSWORD 'reader'`);
  const url = empty.url.replace("user=postgres", `user=${role}`).replace(/password=.*/, "password=reader");
  await failsAtOnce({ DATABASE_URL: url }, "run 'vx migrate' once as the owner");
  await empty.owner.unsafe(`DROP ROLE ${role}`);
  await empty.drop();
});

test("a port in use ends the start, even while the database is away", async () => {
  const port = await unusedPort();
  const other = createServer().listen(port, "127.0.0.1");
  await failsAtOnce({ DATABASE_URL: "postgres://nobody@127.0.0.1:1/none", PORT: String(port) }, "PORT");
  other.close();
});

async function failsAtOnce(env: Record<string, string>, problem: string): Promise<void> {
  const server = await startOnPorts(env);
  await expect(server.ready()).rejects.toThrow(problem);
  expect(waits(server)).toBe(0);
}
