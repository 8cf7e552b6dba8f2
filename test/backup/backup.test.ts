import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { copyFile } from "node:fs/promises";
import { join } from "node:path";
import { zstdCompressSync, zstdDecompressSync } from "node:zlib";
import postgres from "postgres";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openEmbeddedDatabase } from "../../src/app/prepare-database.ts";
import { CELL, MANIFEST } from "../../src/database/backup/backup-format.ts";
import { ArchiveContent, createBackup } from "../../src/database/backup/create-backup.ts";
import { writeNewFile } from "../../src/database/backup/new-file.ts";
import { BLOCK_BYTES, paddingOf, readHeader } from "../../src/database/backup/tar.ts";
import { startEmbeddedPostgres } from "../../src/database/embedded/embedded-postgres.ts";
import { spawnVx, vx } from "../cli/support.ts";
import { createDataFolder } from "../support/data-folder.ts";
import { loginIn, loginTo } from "../support/embedded.ts";
import { type ServerProcess, startServerProcess } from "../support/process.ts";
import { createTemporaryFolder } from "../support/temporary-folder.ts";
import { startLoad } from "./load.ts";

let source: ReturnType<typeof createTemporaryFolder>;
let target: ReturnType<typeof createTemporaryFolder>;
let server: ServerProcess;
let file: string;
/** The charged calls that were answered before the end of the backup. */
let charged: ReadonlySet<string>;

beforeAll(async () => {
  source = createDataFolder("backup-source");
  target = createTemporaryFolder("backup-target");
  file = join(target.path, "backup.tar.zst");
  server = startServerProcess({ VX_DATA_DIR: source.path });
  const secret = await server.line(/(vx_live_\w+)/);
  const url = await server.line(/^vx ready on (\S+)$/m);
  const load = startLoad(url, secret);
  await load.reached(20);
  const database = await openEmbeddedDatabase(source.path, "backup", () => undefined);
  try {
    await createBackup({
      ...database,
      file,
      createdAt: new Date(),
      signal: new AbortController().signal,
      // The copy of the files ends with the last call, and the backup after it.
      onProgress: () => {
        charged = new Set(load.charged);
      },
    });
  } finally {
    await database.close();
  }
  await load.stop();
}, 60_000);

afterAll(async () => {
  if (server.child.exitCode === null) await server.end("SIGTERM");
  source.remove();
  target.remove();
});

test("only its owner can read a backup, and its folder contains no other file", () => {
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(readdirSync(target.path)).toEqual(["backup.tar.zst"]);
});

test("the restored database passes the audit and has every charge committed before the backup ended", async () => {
  const dataDir = join(target.path, "restored");
  const { code, stdout, stderr } = await vx(["backup", "restore", "--json", file], { VX_DATA_DIR: dataDir });
  expect({ code, stderr }).toMatchObject({ code: 0, stderr: expect.stringContaining("restored the database") });
  expect(JSON.parse(stdout)).toMatchObject({ audit: { consistent: true, accounts: 1, keys: 1, findings: [] } });
  expect(charged.size).toBeGreaterThan(20);
  const restored = await startEmbeddedPostgres({ dataDir, print: () => undefined });
  const sql = postgres({ ...loginTo(restored), max: 1 });
  try {
    const rows = await sql<{ id: string }[]>`SELECT replace(id, 'led_', 'gen_') AS id FROM vx.ledger`;
    const found = new Set(rows.map(({ id }) => id));
    expect([...charged].filter((id) => !found.has(id))).toEqual([]);
  } finally {
    await sql.end();
    await restored.stop();
  }
  // The secrets of the old data folder are in no backup: the server makes new ones.
  expect(existsSync(join(dataDir, "admin-token"))).toBe(false);
  expect(readFileSync(join(dataDir, "postgres-password"), "utf8")).not.toBe(
    readFileSync(join(source.path, "postgres-password"), "utf8"),
  );

  const again = await vx(["backup", "restore", file], { VX_DATA_DIR: dataDir });
  expect(again.code).toBe(1);
  expect(again.stderr).toMatch(/^vx: there is a database in .*--replace/);
  const replaced = await vx(["backup", "restore", "--replace", file], { VX_DATA_DIR: dataDir });
  expect(replaced).toMatchObject({ code: 0, stdout: expect.stringMatching(/CONSISTENT\n.*yes\n/) });
  expect(readdirSync(dataDir).filter((name) => name.startsWith("postgres.replaced-"))).toHaveLength(1);
});

test("a restored database has the configuration of vx, whatever files the backup has", async () => {
  const hostile = join(target.path, "hostile.tar.zst");
  const outside = join(target.path, "outside");
  mkdirSync(outside, { mode: 0o777 });
  chmodSync(outside, 0o777);
  const run = `touch ${outside}/executed; false`;
  const settings = `archive_mode = on\narchive_command = '${run}'\nrestore_command = '${run}'\n`;
  const planted: Record<string, string> = {
    "postgresql.conf": `${settings}include 'more.conf'\n`,
    "postgresql.auto.conf": settings,
    "vx.conf": settings,
    "more.conf": settings,
    "pg_hba.conf": "local all all trust\n",
    "pg_ident.conf": "map /^(.*)$ postgres\n",
    "recovery.signal": "",
    "standby.signal": "",
    tablespace_map: `99999 ${outside}\n`,
    "pg_tblspc/99998/PG_18_202506291/file": "",
    "pg_wal/archive_status/000000010000000000000001.ready": "",
    "pg_replslot/slot/state": "",
    "current_logfiles/file": "",
  };
  writeFileSync(hostile, withFiles(readFileSync(file), planted));
  const dataDir = join(target.path, "hostile");
  const { code, stderr } = await vx(["backup", "restore", hostile], { VX_DATA_DIR: dataDir });
  expect(code, stderr).toBe(0);
  const restored = await startEmbeddedPostgres({ dataDir, print: () => undefined });
  const sql = postgres({ ...loginTo(restored), max: 1 });
  await sql`CHECKPOINT`;
  await sql`SELECT pg_switch_wal()`;
  const files = await sql<{ file: string }[]>`SELECT DISTINCT sourcefile AS file FROM pg_file_settings`;
  const [archive] = await sql`SELECT current_setting('archive_mode') AS mode`;
  await sql.end();
  await restored.stop();
  const cluster = join(dataDir, "postgres");
  expect(files.map(({ file }) => file)).toEqual([join(cluster, "vx.conf")]);
  expect(archive).toEqual({ mode: "off" });
  expect(readdirSync(outside)).toEqual([]);
  const keeps = (name: string) => {
    const path = join(cluster, name);
    return existsSync(path) && readFileSync(path, "utf8") === planted[name];
  };
  expect(Object.keys(planted).filter(keeps)).toEqual([]);
});

/** The backup with other files in its cluster, and a manifest that names them. */
function withFiles(backup: Buffer, files: Readonly<Record<string, string>>): Buffer {
  const tar = zstdDecompressSync(backup);
  const content = new ArchiveContent();
  const parts: Buffer[] = [];
  for (let at = 0; ; ) {
    const header = readHeader(tar.subarray(at, at + BLOCK_BYTES));
    if (header === undefined || header.name === MANIFEST) break;
    const start = at + BLOCK_BYTES;
    const bytes = tar.subarray(start, start + header.bytes);
    if (files[header.name.slice(CELL.length)] === undefined) parts.push(...content.text(header.name, bytes));
    at = start + header.bytes + paddingOf(header.bytes);
  }
  for (const [name, text] of Object.entries(files)) parts.push(...content.text(CELL + name, text));
  return zstdCompressSync(Buffer.concat([...parts, ...content.end()]));
}

test("a damaged backup changes nothing in the data folder", async () => {
  const damaged = join(target.path, "damaged.tar.zst");
  await copyFile(file, damaged);
  truncateSync(damaged, statSync(file).size - 100);
  const dataDir = join(target.path, "untouched");
  const { code, stderr } = await vx(["backup", "restore", damaged], { VX_DATA_DIR: dataDir });
  expect({ code, stderr }).toEqual({
    code: 1,
    stderr: `vx: ${damaged} is damaged or incomplete, or is not a backup made by vx\n`,
  });
  expect(readdirSync(dataDir)).toEqual(["postgres-password"]);
});

test("a backup is refused where it would replace a file, restored over a running server, or is of another PostgreSQL", async () => {
  const env = { VX_DATA_DIR: source.path };
  const refusal = async (args: string[], own: Record<string, string> = env) => {
    const { code, stderr } = await vx(["backup", ...args], own);
    return `${code} ${stderr}`;
  };
  expect(await refusal(["create", file])).toBe(`1 vx: ${file} already exists; choose another file name\n`);
  expect(await refusal(["restore", "--replace", file])).toMatch(/^1 vx: the database in .* is running/);
  expect(await refusal(["restore", join(target.path, "none")], { VX_DATA_DIR: join(target.path, "new") })).toMatch(
    /^1 vx: .*none cannot be read: no such file/,
  );
  const url = { DATABASE_URL: "postgres://owner@db.example/vx" };
  expect(await refusal(["create", `${file}2`], url)).toMatch(/^2 vx: DATABASE_URL is set.*pg_basebackup.*pg_dump/);
  expect(await refusal(["create", `${file}2`], { VX_DATA_DIR: join(target.path, "empty") })).toMatch(/^1 vx: there is no folder/);
  expect(await refusal(["create", `${file}2`], { VX_DATA_DIR: target.path })).toMatch(/^1 vx: there is no database/);
  expect(existsSync(`${file}2`)).toBe(false);
});

test("an interrupted backup leaves no file, and ends the backup in PostgreSQL", async () => {
  const folder = createTemporaryFolder("backup-interrupted");
  const database = await openEmbeddedDatabase(source.path, "backup", () => undefined);
  const controller = new AbortController();
  await expect(
    createBackup({
      ...database,
      file: join(folder.path, "file"),
      createdAt: new Date(),
      signal: controller.signal,
      onProgress: (done, inTotal) => done > inTotal / 2 && controller.abort(new Error("interrupted")),
    }),
  ).rejects.toThrow("aborted");
  await database.close();
  expect(readdirSync(folder.path)).toEqual([]);
  folder.remove();
  const sql = postgres({ ...loginIn(source.path), max: 1 });
  expect(await sql`SELECT FROM pg_replication_slots`).toHaveLength(0);
  await sql.end();
});

test("a backup leaves no file if a part of the write-ahead log that it needs is missing", async () => {
  const folder = createTemporaryFolder("backup-without-log");
  // The folder of another cluster has none of the log of this one.
  const clusterDir = join(folder.path, "postgres");
  mkdirSync(clusterDir);
  writeFileSync(join(clusterDir, "PG_VERSION"), "18\n");
  const database = await openEmbeddedDatabase(source.path, "backup", () => undefined);
  const backup = createBackup({
    ...database,
    clusterDir,
    file: join(folder.path, "file"),
    createdAt: new Date(),
    signal: new AbortController().signal,
    onProgress: () => undefined,
  });
  await expect(backup).rejects.toThrow("a part of the write-ahead log");
  await database.close();
  expect(readdirSync(folder.path)).toEqual(["postgres"]);
  folder.remove();
});

test("an unfinished file of an earlier process with the same pid is removed", async () => {
  const folder = createTemporaryFolder("backup-unfinished");
  const path = join(folder.path, "file");
  writeFileSync(`${path}.new-${process.pid}-00000000`, "");
  await writeNewFile(path, (file) => file.writeFile("complete"));
  expect(readdirSync(folder.path)).toEqual(["file"]);
  folder.remove();
});

test("a backup that does not fit on the disk leaves no file", async () => {
  const folder = createTemporaryFolder("backup-full");
  // A limit on the size of a file, which gives an error as a full disk does.
  const limited = `trap "" XFSZ; ulimit -f 200; exec "$@"`;
  const env = { VX_DATA_DIR: source.path };
  const { code, stderr } = await spawnVx(["backup", "create", join(folder.path, "file")], env, ["/bin/sh", "-c", limited, "sh"]);
  expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringMatching(/^vx: .*file cannot be written: file too large/) });
  expect(readdirSync(folder.path)).toEqual([]);
  folder.remove();
});

test("the database of a stopped server is started for a backup, and stopped after it", async () => {
  expect(await server.end("SIGTERM")).toBe(0);
  const second = join(target.path, "second.tar.zst");
  const { code, stdout } = await vx(["backup", "create", "--json", second], { VX_DATA_DIR: source.path });
  expect(code).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject({ file: second, bytes: statSync(second).size });
  expect(existsSync(join(source.path, "postgres", "postmaster.pid"))).toBe(false);
});
