import { randomBytes } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { launchTestApp } from "../support/app.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { createTemporaryFolder } from "../support/temporary-folder.ts";
import { spawnVx, vx } from "./support.ts";

const folder = createTemporaryFolder("cells-cli");
const file = join(folder.path, "cells.yaml");
let database: TestDatabase;

beforeAll(async () => {
  database = await createTestDatabase({ template: "template0" });
});
afterAll(async () => {
  await database.drop();
  folder.remove();
});

type Entry = { readonly name: string; readonly lanes?: string; readonly database_url?: string };

function writeCells(entries: readonly Entry[]): void {
  const cells = entries.map((entry) => ({ database_url: database.url, schema: `cell_${entry.name}`, ...entry }));
  writeFileSync(file, JSON.stringify({ cells }));
}

const run = (...args: string[]) => vx(args, { VX_CELLS: file });

test("migrate creates the cells with their lanes, and later only migrates them", async () => {
  const halves = [
    { name: "a", lanes: "0-511" },
    { name: "b", lanes: "512-1023" },
  ];
  writeCells(halves);
  const upToDate = ["a", "b"].map((cell) => `The schema of the cell "${cell}" is up to date.\n`).join("");
  expect((await run("migrate", "--dry-run")).stdout).toMatch(/^a: would apply 0001_foundation\n.*\nb: would/s);
  const created = await run("migrate");
  expect(created).toMatchObject({ code: 0, stderr: "" });
  expect(created.stdout).toMatch(/^a: applied 0001_foundation\n.*\nb: applied \d+ functions\n/s);
  expect(created.stdout.replaceAll(/^\w: .*\n/gm, "")).toBe(upToDate);
  expect(await run("migrate")).toEqual({ code: 0, stdout: upToDate, stderr: "" });
  expect((await run("migrate", "--status")).stdout).toMatch(/^CELL +MIGRATION +APPLIED\na +0001_foundation +20/);
  // Who owns a lane is decided by the cells.
  writeCells([{ name: "a" }, { name: "b" }]);
  expect((await run("migrate")).code).toBe(0);
  const { code, stdout } = await run("cells", "status", "--json");
  expect(code).toBe(0);
  expect(JSON.parse(stdout)).toEqual({ cells: halves.map(({ name, lanes }) => ({ name, schema: `cell_${name}`, lanes })) });
});

test("a cell is not created with lanes that another one owns, or may own", async () => {
  writeCells([{ name: "a" }, { name: "b" }, { name: "c", lanes: "7" }]);
  expect(await run("migrate")).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/^vx: c: .* not created, because "a" owns lane 7; create it without lanes/),
  });
  const nowhere = "postgres://owner:secret@127.0.0.1:1/vx";
  writeCells([{ name: "b" }, { name: "away", database_url: nowhere }, { name: "c", lanes: "7" }]);
  const refused = await run("migrate");
  expect(refused.code).toBe(1);
  expect(refused.stderr).toMatch(/"away" cannot be asked/);
  expect(refused.stderr).not.toContain("secret");
  expect((await database.owner`SELECT to_regnamespace('cell_c') AS schema`)[0]?.schema).toBeNull();

  writeCells([{ name: "a" }, { name: "b" }, { name: "c" }]);
  expect((await run("migrate")).code).toBe(0);
  const { stdout } = await run("cells", "status");
  expect(stdout).toMatch(/^a .* 512 +0-511\nb .* 512 +512-1023\nc .* 0 +-$/m);
});

test("status names a cell that cannot be reached and exits with 1", async () => {
  writeCells([{ name: "a" }, { name: "away", database_url: "postgres://owner:secret@127.0.0.1:1/vx" }]);
  const { code, stdout } = await run("cells", "status");
  expect(code).toBe(1);
  expect(stdout).toMatch(/^a .*usable/m);
  expect(stdout).toMatch(/^away .*127\.0\.0\.1:1/m);
  expect(stdout).not.toContain("secret");
});

test("a split needs a standby and lanes, or --abort alone", async () => {
  writeCells([{ name: "a" }, { name: "b" }]);
  const to = ["--to", database.url];
  const misuses = [[], to, ["--lanes", "7"], ["--abort", ...to], ["--abort", "--lanes", "7"]];
  for (const args of misuses) expect((await run("cells", "split", "a", ...args)).code).toBe(2);
  expect(await run("cells", "split", "a", "--abort")).toEqual({
    code: 1,
    stdout: "",
    stderr: 'vx: the cell "a" has no unfinished split\n',
  });
  await database.owner`SELECT cell_a.begin_split('split_1', 'a', 'b', '{7,8}')`;
  await database.owner`SELECT cell_a.release_lanes('split_1')`;
  expect((await run("cells", "status")).stdout).toMatch(/^a .* 510 /m);
  const { code, stdout } = await run("cells", "split", "a", "--abort", "--json");
  expect(code).toBe(0);
  expect(JSON.parse(stdout)).toEqual({ source: "a", lanes: "7-8" });
  expect((await run("cells", "status")).stdout).toMatch(/^a .* 512 +0-511$/m);
});

test("a split whose login cannot see the standbys fails at once and names the GRANT", async () => {
  const login = `split_${randomBytes(4).toString("hex")}`;
  await database.owner.unsafe(`CREATE ROLE ${login} LOGIN PASSWORD 'secret'`);
  try {
    const url = new URL(database.url.replace("postgres:///", "postgres://none/"));
    url.searchParams.set("user", login);
    url.searchParams.set("password", "secret");
    const limited = url.href.replace("postgres://none/", "postgres:///");
    writeCells([{ name: "a", database_url: limited }, { name: "b" }]);
    const split = (to: string) => run("cells", "split", "a", "--to", to, "--lanes", "7");
    const refusal = (place: string) => ({
      code: 1,
      stdout: "",
      stderr: `vx: the login ${login} of ${place} may not read the state of the replication; as a superuser of the source, run: GRANT pg_monitor TO ${login}\n`,
    });
    expect(await split(database.url)).toEqual(refusal("the source"));
    writeCells([{ name: "a" }, { name: "b" }]);
    expect(await split(limited)).toEqual(refusal("the standby"));
    await database.owner.unsafe(`GRANT pg_monitor TO ${login}`);
    const { stderr } = await split(limited);
    expect(stderr).not.toContain("GRANT");
  } finally {
    await database.owner.unsafe(`DROP ROLE ${login}`);
  }
});

test("a server that is started on one of several cells without VX_CELLS exits with 2 and names the lanes", async () => {
  const cell = await createTestDatabase();
  try {
    await cell.owner`UPDATE vx.lanes SET is_owned = lane < 512`;
    const env = { DATABASE_URL: cell.url, VX_DATA_DIR: folder.path, PORT: "0", VX_ADMIN_PORT: "0" };
    const line = /VX_CELLS: is missing: .* owns only 512 of 1024 lanes \(0-511\); set VX_CELLS /;
    await expect(launchTestApp(env).started).rejects.toThrow(line);
    const { code, stdout, stderr } = await spawnVx(["serve"], { ...env, VX_WORKERS: "2" });
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toMatch(new RegExp(`^vx: invalid settings\n${line.source}.*\n$`));
  } finally {
    await cell.drop();
  }
});

const cellOf = (fields: object = {}) => ({ name: "a", database_url: "postgres://x/y", ...fields });
test.each<[what: string, cells: unknown, problem: RegExp]>([
  ["no list", undefined, /cells: must be a list/],
  ["an unknown field", [cellOf({ lane: 1 })], /cells\[0\]: .*"lane"/],
  ["a bad range", [cellOf({ lanes: "5-1024" })], /cells\[0\]\.lanes: /],
  ["another engine", [cellOf({ engine: "mysql" })], /engine: must be "postgresql"/],
  [
    "a lane of two cells",
    [cellOf({ lanes: 5 }), cellOf({ name: "b", database_url: "postgres://x/z", lanes: "0-9" })],
    /cells\[1\]\.lanes: lane 5 is among the lanes of the cell "a"/,
  ],
  ["one place for two cells", [cellOf(), cellOf({ name: "b" })], /cells\[1\]\.schema: .*"a"/],
])("a file with %s is refused", async (_what, cells, problem) => {
  writeFileSync(file, JSON.stringify({ cells }));
  const { code, stderr } = await run("cells", "status");
  expect(code).toBe(2);
  expect(stderr).toMatch(problem);
});
