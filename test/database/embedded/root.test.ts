import { chmod, chown, cp, lstat, mkdir, readdir, readFile, stat, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { findBinaryPackage } from "../../../src/database/embedded/binaries.ts";
import { putDatabase } from "../../support/data-folder.ts";
import {
  cleanUp,
  isRoot,
  launchOwner,
  makeDataFolder,
  makeFolder,
  patient,
  postmasterPid,
  processesIn,
  query,
  removeAtEnd,
  start,
} from "./support.ts";

/** The uid of the database's system user, by default `nobody`. */
const unprivilegedUid = await uidOf("vx", "postgres", "nobody");
const repository = join(import.meta.dirname, "..", "..", "..");

afterEach(cleanUp);

async function uidOf(...names: string[]): Promise<number> {
  const lines = (await readFile("/etc/passwd", "utf8")).split("\n").map((line) => line.split(":"));
  const found = names.map((name) => lines.find(([user]) => user === name)).find((line) => line !== undefined);
  return Number(found?.[2] ?? 65534);
}

/** Copies the files of this repository that the embedded database needs. */
async function cloneInto(folder: string): Promise<string> {
  const { root } = await findBinaryPackage();
  const parts = [
    "package.json",
    "src/database/embedded",
    "test/database/embedded/start-and-wait.ts",
    root.slice(repository.length + 1),
  ];
  for (const part of parts) {
    await mkdir(dirname(join(folder, part)), { recursive: true });
    await cp(join(repository, part), join(folder, part), { recursive: true, verbatimSymlinks: true });
  }
  return join(folder, "test", "database", "embedded", "start-and-wait.ts");
}

describe.skipIf(!isRoot)("started by root (skipped: this is not root)", patient, () => {
  test("without a dedicated system user the database runs as `nobody`, with a warning, who can pass through a data folder that root creates under umask 077", async () => {
    const path = await makeFolder();
    await writeFile(join(path, "id"), "#!/bin/sh\nexit 1\n", { mode: 0o755 });
    const dataDir = join(await makeFolder(), "a", "b");
    const owner = await launchOwner(dataDir, { path, umask: "077" }).ready;
    expect(owner.report).toMatchObject({ adopted: false, clusterDir: join(dataDir, "postgres") });
    expect((await stat(`/proc/${await postmasterPid(owner.report)}`)).uid).toBe(65534);
    expect(owner.report.said[0]).toMatch(/^warning: the database runs as uid 65534, .*system user 'vx'/);
    await owner.kill();
    // The files belong to `nobody`, so a later start runs as `nobody` too.
    const server = await start(dataDir);
    expect(server.adopted).toBe(true);
    expect(server.said[0]).toMatch(/^warning: the database runs as uid 65534/);
  });

  test("a database and binaries that only root can reach are stored elsewhere, and found again", async () => {
    const folder = await makeFolder(0o700);
    const script = await cloneInto(folder);
    const dataDir = join(folder, ".vx");
    const { report, kill } = await launchOwner(dataDir, { script }).ready;
    const home = dirname(report.clusterDir);
    removeAtEnd(home);
    expect(home).toMatch(/^\/var\/lib\/vx\/vx-embedded-\w+-[0-9a-f]{12}$/);
    expect(report.error).toBeUndefined();
    expect(report.said[0]).toContain(`the database is in ${home}`);
    expect(report.said.join("\n")).toContain(`binaries were copied to ${home}/binaries-`);
    await kill();
    const server = await start(dataDir);
    expect(server.adopted).toBe(true);
    await query(server, "create table kept as select 42 as answer");
    await server.stop();

    const again = await launchOwner(dataDir, { script }).ready;
    expect(again.report).toMatchObject({ adopted: false });
    await again.kill();

    // Also if the folder has become accessible since.
    await chmod(folder, 0o755);
    const last = await start(dataDir);
    expect(last).toMatchObject({ adopted: true, clusterDir: report.clusterDir });
    expect(await query(last, "select answer from kept")).toEqual([{ answer: 42 }]);
    await last.stop();
    expect(await processesIn(home)).toEqual([]);
  });

  test("a database that became inaccessible is not replaced by an empty one", async () => {
    const parent = await makeFolder();
    const dataDir = join(parent, "data");
    putDatabase(dataDir);
    await chmod(parent, 0o700);
    await expect(start(dataDir)).rejects.toThrow(/cannot reach the database in .*chmod o\+x/);
  });

  test("an ordinary user gets an error that names the owner of the database", async () => {
    const dataDir = await makeDataFolder();
    const { report } = await launchOwner(dataDir, { uid: 65533 }).ready;
    expect(report.error).toMatch(/^EmbeddedPostgresError: the database in /);
    expect(report.error).toContain(`belongs to uid ${unprivilegedUid}, but this is uid 65533`);
    expect(report.error).toContain(`chown -R 65533:65533 ${dataDir}`);
  });

  test("root runs the database of an ordinary user as that user, and keeps its owner", async () => {
    const dataDir = await makeDataFolder();
    await (await start(dataDir)).stop();
    for (const name of ["", ...(await readdir(dataDir, { recursive: true }))]) {
      await chown(join(dataDir, name), 65533, 65533);
    }
    const server = await start(dataDir);
    expect((await stat(`/proc/${await postmasterPid(server)}`)).uid).toBe(65533);
    await server.stop();
    const owners = await Promise.all(
      (await readdir(dataDir, { recursive: true })).map(async (name) => (await lstat(join(dataDir, name))).uid),
    );
    expect(new Set(owners)).toEqual(new Set([65533]));

    const { report } = await launchOwner(dataDir, { uid: 65533 }).ready;
    expect(report).toMatchObject({ adopted: false });
    expect(await start(dataDir)).toMatchObject({ adopted: true });
  });

  test("a temporary socket folder of another user is refused", async () => {
    const dataDir = join(await makeFolder(), "d".repeat(120));
    putDatabase(dataDir);
    const server = await start(dataDir);
    await server.stop();
    await mkdir(server.socketDir, { mode: 0o700 });
    removeAtEnd(server.socketDir);
    await chown(server.socketDir, 65533, 65533);
    await expect(start(dataDir)).rejects.toThrow("belongs to uid 65533");
  });
});
