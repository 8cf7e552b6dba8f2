import { mkdir, readdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, describe, expect, test, vi } from "vitest";
import { ownUid } from "../../../src/database/embedded/server-user.ts";
import { putDatabase } from "../../support/data-folder.ts";
import { cleanUp, isRoot, makeDataFolder, makeFolder, patient, postmasterPid, query, start } from "./support.ts";

afterEach(cleanUp);

describe("start of the embedded database", patient, () => {
  test("the first start creates the database with a message and a password; the second finds both, in a path of any characters", async () => {
    const dataDir = join(await makeFolder(), `it's a "folder", дом`);
    await mkdir(dataDir);
    await writeFile(join(dataDir, "admin-token"), "secret", { mode: 0o600 });
    const cold = await start(dataDir);
    expect(cold).toMatchObject({ adopted: false, clusterDir: join(dataDir, "postgres"), socketDir: join(dataDir, "run") });
    expect(cold.said).toEqual([`creating the database in ${dataDir}/postgres (first start only) …`]);
    const file = join(dataDir, "postgres-password");
    expect(await stat(file)).toMatchObject({ uid: ownUid(), mode: 0o100600 });
    expect((await readFile(file, "utf8")).trim()).toBe(cold.password);
    expect(cold.password).toMatch(/^[\w-]{43}$/);
    const other = await start(await makeDataFolder());
    expect(other.password).not.toBe(cold.password);
    if (isRoot) {
      // PostgreSQL runs as an unprivileged user, and root keeps the data folder.
      expect((await stat(`/proc/${await postmasterPid(cold)}`)).uid).not.toBe(0);
      expect((await stat(cold.clusterDir)).uid).not.toBe(0);
      expect(await stat(dataDir)).toMatchObject({ uid: 0, mode: 0o40755 });
      expect(await stat(join(dataDir, "admin-token"))).toMatchObject({ uid: 0, mode: 0o100600 });
    }
    await query(cold, "create table kept as select 42 as answer");
    await cold.stop();

    const warm = await start(dataDir);
    expect(warm).toMatchObject({ adopted: false, said: [], password: cold.password });
    expect(await query(warm, "select answer from kept")).toEqual([{ answer: 42 }]);
    expect(await readdir(dataDir)).toEqual(["admin-token", "log", "postgres", "postgres-password", "run"]);
  });

  test("the database is durable, uses UTF-8, listens only on the unix socket and writes its log", async () => {
    const server = await start(await makeDataFolder());
    const settings = await query(server, "select name, setting from pg_settings");
    const setting = Object.fromEntries(settings.map((row) => [row.name, row.setting]));
    expect(setting).toMatchObject({
      fsync: "on",
      full_page_writes: "on",
      synchronous_commit: "on",
      listen_addresses: "",
      max_connections: "100",
      server_encoding: "UTF8",
      lc_messages: "C",
      TimeZone: "UTC",
      log_directory: server.logDir,
      log_filename: "postgresql-%a.log",
      log_truncate_on_rotation: "on",
      log_parameter_max_length_on_error: "0",
    });
    expect(await query(server, "select type, auth_method from pg_hba_file_rules")).toEqual([
      { type: "local", auth_method: "scram-sha-256" },
    ]);
    expect(await query(server, "select datcollate from pg_database where datname = 'postgres'")).toEqual([{ datcollate: "C" }]);
    expect((await stat(server.socketDir)).mode & 0o777).toBe(0o700);
    expect((await stat(server.clusterDir)).mode & 0o777).toBe(0o700);
    if (process.platform === "linux") {
      // Backends do not return the memory of each statement to the system.
      const environment = await readFile(`/proc/${await postmasterPid(server)}/environ`, "utf8");
      expect(environment.split("\0")).toContain("MALLOC_TRIM_THRESHOLD_=8388608");
    }
    await expect(query(server, "select no_such_column")).rejects.toThrow("no_such_column");
    // The collector is a process of its own: it writes after the caller got its error.
    await vi.waitFor(async () => {
      const names = await readdir(server.logDir);
      const logs = await Promise.all(names.map((name) => readFile(join(server.logDir, name), "utf8")));
      expect(logs.join("")).toContain("no_such_column");
    });
  });

  test("the socket of a long path is in the temporary folder, and removed by a stop", async () => {
    const dataDir = join(await makeFolder(), "d".repeat(120));
    putDatabase(dataDir);
    const server = await start(dataDir);
    expect(server.socketDir.startsWith(dataDir)).toBe(false);
    expect((await stat(server.socketDir)).mode & 0o777).toBe(0o700);
    expect(await query(server, "select 1 as one")).toEqual([{ one: 1 }]);
    await server.stop();
    await expect(stat(server.socketDir)).rejects.toThrow("ENOENT");
  });
});
