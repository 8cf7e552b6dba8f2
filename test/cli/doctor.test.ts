import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, inject, onTestFinished, test, vi } from "vitest";
import { examine, examineAtStart } from "../../src/app/doctor.ts";
import type { Finding } from "../../src/app/finding.ts";
import { readConfig } from "../../src/app/settings/config.ts";
import { startTestApp } from "../support/app.ts";
import { createTwoCells, writeCellsFile } from "../support/cells.ts";
import { createCertificate } from "../support/certificate.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { modelsYaml } from "../support/models.ts";
import { createPayer } from "../support/payer.ts";
import { openDatabase } from "../support/store.ts";
import { createTemporaryFolder } from "../support/temporary-folder.ts";
import { unusedPort } from "../support/unused-port.ts";
import { vx } from "./support.ts";

const UP_TO_DATE = "The schema of the database is up to date.\n";
const folder = createTemporaryFolder("doctor");
let database: TestDatabase;
/** The URL of a login that is only a member of vx_app. */
let serverUrl: string;

beforeAll(async () => {
  database = await createTestDatabase();
  serverUrl = database.url.replace("user=postgres", "user=vx_app").replace(/password=.*/, `password=${inject("passwords").app}`);
});
afterAll(async () => {
  await database.drop();
  folder.remove();
});
afterEach(() => vi.useRealTimers());

const settings = (env: Record<string, string> = {}) => readConfig({ DATABASE_URL: serverUrl, VX_DATA_DIR: folder.path, ...env });

const findings = (env: Record<string, string> = {}) => examine({ config: settings(env), env, embedded: undefined });

async function finding(check: string, env: Record<string, string> = {}): Promise<Finding | undefined> {
  return (await findings(env)).find((found) => found.check === check);
}

test("every check of a healthy server is ok, with the login of the server", async () => {
  const found = await findings();
  expect(found.filter(({ status }) => status !== "ok")).toEqual([]);
  expect(found.map(({ check }) => check)).toEqual([
    ...["clock", "connections", "partitions", "migrations", "privileges", "replication slots", "database size", "models file"],
  ]);
});

describe("the command", () => {
  test("prints a line for each check and what to do, and exits with 1 only on a problem", async () => {
    const healthy = await vx(["doctor"], { DATABASE_URL: database.url });
    expect(healthy.code).toBe(0);
    expect(healthy.stdout).toMatch(/^ok {7}clock: /m);
    expect(healthy.stdout).toMatch(/^warning {2}privileges: postgres is the owner.*\n {9}for servers, use a login/m);
    const url = `postgres://vx@127.0.0.1:${await unusedPort()}/vx`;
    const lost = await vx(["doctor", "--json"], { DATABASE_URL: url });
    expect(lost.code).toBe(1);
    const problem = { check: "database", status: "problem", message: expect.stringContaining("ECONNREFUSED") };
    expect(JSON.parse(lost.stdout).findings).toContainEqual(expect.objectContaining(problem));
  });

  test("refuses settings that the server refuses", async () => {
    const { code, stderr } = await vx(["doctor"], { VX_WORKERS: "many" });
    expect(code).toBe(2);
    expect(stderr).toContain("VX_WORKERS");
  });
});

test.each([
  [-120_000, "problem", "behind"],
  [5_000, "warning", "ahead of"],
] as const)("a clock that differs by %i ms is a %s", async (offsetMs, status, direction) => {
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + offsetMs });
  const [clock] = await examineAtStart({ config: settings(), embedded: undefined });
  expect(clock).toMatchObject({ check: "clock", status });
  expect(clock?.message).toContain(direction);
});

test("settings that need more connections than PostgreSQL allows are a problem", async () => {
  expect(await finding("connections", { VX_WORKERS: "64", VX_DATABASE_CONNECTIONS: "100" })).toMatchObject({
    status: "problem",
    advice: expect.stringContaining("max_connections"),
  });
});

test("a missing partition is a warning, and rows in the default partition are a problem until they are moved", async () => {
  const own = await createTestDatabase();
  onTestFinished(() => own.drop());
  const env = { DATABASE_URL: own.url };
  const [row] = await own.owner<{ name: string }[]>`
    SELECT 'vx.ledger_' || to_char((now() AT TIME ZONE 'UTC') + interval '1 month', 'YYYY_MM') AS name`;
  await own.owner.unsafe(`DROP TABLE ${row?.name}`);
  expect(await finding("partitions", env)).toMatchObject({ status: "warning" });
  await own.owner`SELECT vx.create_ledger_partitions()`;
  expect(await finding("partitions", env)).toMatchObject({ status: "ok" });
  const partitions = await own.owner<{ name: string }[]>`SELECT 'vx.' || name AS name FROM vx.ledger_partitions()`;
  for (const { name } of partitions) await own.owner.unsafe(`DROP TABLE ${name}`);
  const store = openDatabase(own.address);
  await createPayer(store, 1_000_000n);
  await store.close();
  const rows = { status: "problem", message: expect.stringContaining("ledger_other_months has rows") };
  expect(await finding("partitions", env)).toMatchObject(rows);
  const [month] = await own.owner`SELECT to_char(now() AT TIME ZONE 'UTC', 'YYYY_MM') AS name`;
  const move = `1 ledger entry to the new partition ledger_${month?.name}\n`;
  expect((await vx(["migrate", "--dry-run"], env)).stdout).toBe(`would move ${move}`);
  expect((await vx(["migrate"], env)).stdout).toBe(`moved ${move}${UP_TO_DATE}`);
  expect((await vx(["migrate"], env)).stdout).toBe(UP_TO_DATE);
  expect(await finding("partitions", env)).toMatchObject({ status: "ok" });
});

test.each([
  ["migrations", "warning", "1 migrations and 0 functions are pending", "DELETE FROM vx.migrations"],
  [
    "migrations",
    "warning",
    "0 migrations and 1 functions are pending",
    "UPDATE vx.functions SET checksum = 'other' WHERE name = 'bill'",
  ],
  ["privileges", "problem", "may change the ledger", "GRANT UPDATE ON vx.ledger TO vx_app"],
])("%s: a %s says that %s", async (check, status, message, change) => {
  const own = await createTestDatabase();
  onTestFinished(() => own.drop());
  await own.owner.unsafe(change);
  expect(await finding(check, { DATABASE_URL: own.url })).toMatchObject({ status, message: expect.stringContaining(message) });
});

test("each cell is checked, and one that does not answer is named", async () => {
  const cells = await createTwoCells();
  const [a, b] = cells;
  const file = writeCellsFile(folder.path, [a, { ...b, url: "postgres://vx@127.0.0.1:1/vx" }]);
  const found = await findings({ DATABASE_URL: "", VX_CELLS: file });
  expect(found).toContainEqual(expect.objectContaining({ check: "cell a: clock", status: "ok" }));
  expect(found).toContainEqual(expect.objectContaining({ check: "cell b: database", status: "problem" }));
  for (const cell of cells) await cell.drop();
});

test("a wrong models file is a problem, and so is an upstream that cannot be reached", async () => {
  const server = createServer((_request, response) => response.writeHead(401).end()).listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const { port } = server.address() as { port: number };
  const models = join(folder.path, "models.yaml");
  const env = { VX_MODELS: models };
  const write = (at: number) => {
    const upstream = `{ kind: openai, base_url: "http://127.0.0.1:${at}/v1", model: m }`;
    writeFileSync(models, modelsYaml(["m"]).replace("{kind: sandbox}", upstream));
  };
  write(port);
  expect((await findings(env)).filter(({ check }) => check === "models file" || check === "upstream")).toEqual([
    { check: "upstream", status: "ok", message: `127.0.0.1:${port} answers (HTTP 401)` },
    { check: "models file", status: "ok", message: "1 models" },
  ]);
  server.close();
  write(await unusedPort());
  const lost = { status: "problem", message: expect.stringContaining("cannot be reached") };
  expect(await finding("upstream", env)).toMatchObject(lost);
  writeFileSync(models, "models: 7\n");
  expect(await finding("models file", env)).toMatchObject({ status: "problem" });
});

test("a certificate that expires soon is a warning, also in the log of the start", async () => {
  const { cert, key } = createCertificate();
  const files = { VX_TLS_CERT: join(folder.path, "vx.crt"), VX_TLS_KEY: join(folder.path, "vx.key") };
  writeFileSync(files.VX_TLS_CERT, cert);
  writeFileSync(files.VX_TLS_KEY, key);
  expect(await finding("certificate", files)).toMatchObject({ status: "warning" });
  const app = await startTestApp({ env: files });
  await vi.waitFor(() => expect(app.logText()).toMatch(/"check":"certificate".*SIGHUP/));
  await app.stop();
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 3 * 86_400_000 });
  expect(await finding("certificate", files)).toMatchObject({ status: "problem" });
});
