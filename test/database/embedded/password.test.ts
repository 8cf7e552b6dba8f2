import { readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import postgres from "postgres";
import { afterEach, describe, expect, test } from "vitest";
import { runProgram } from "../../../src/database/embedded/run-program.ts";
import { loginTo } from "../../support/embedded.ts";
import {
  cleanUp,
  isRoot,
  launchOwner,
  makeDataFolder,
  makeFolder,
  patient,
  postmasterPid,
  query,
  type Started,
  start,
} from "./support.ts";

afterEach(cleanUp);

async function tryToLogIn(server: Started, username: string, password: string): Promise<string> {
  const login = { ...loginTo(server, username), password };
  const sql = postgres({ ...login, max: 1, onnotice: () => undefined });
  try {
    const [row] = await sql`SELECT current_user::text AS name`;
    return String(row?.name);
  } catch (error) {
    return String((error as { code?: string }).code);
  } finally {
    await sql.end({ timeout: 1 });
  }
}

const refused = "28P01";

describe("the password of the embedded database", patient, () => {
  test("is required for every login, differs for each role, appears in no log, and PostgreSQL stores only its verifier", async () => {
    const server = await start(await makeDataFolder());
    await query(server, "CREATE ROLE app LOGIN");
    expect(await tryToLogIn(server, "app", server.passwordOf("app"))).toBe(refused);
    await query(server, `ALTER ROLE app PASSWORD '${server.verifierOf("app")}'`);
    expect(await tryToLogIn(server, "app", server.passwordOf("app"))).toBe("app");
    expect(await tryToLogIn(server, "postgres", server.passwordOf("app"))).toBe(refused);
    expect(await tryToLogIn(server, "app", server.password)).toBe(refused);
    expect(await tryToLogIn(server, "postgres", "guess")).toBe(refused);

    await query(server, "SET log_statement = 'all'; SELECT 1");
    const names = await readdir(server.logDir);
    const texts = await Promise.all(names.map((name) => readFile(join(server.logDir, name), "utf8")));
    expect(texts.join("")).toContain("database system is ready");
    expect([...texts, ...server.said].join("")).not.toContain(server.password);
    const stored = "SELECT rolpassword AS stored FROM pg_authid WHERE rolname = 'postgres'";
    expect((await query(server, stored))[0]?.stored).toMatch(/^SCRAM-SHA-256\$4096:/);
  });

  test("is replaced if its file is missing, also for a database with trust authentication", async () => {
    const dataDir = await makeDataFolder();
    const old = await start(dataDir);
    await query(old, "CREATE TABLE kept AS SELECT 42 AS answer");
    await query(old, "ALTER ROLE postgres PASSWORD NULL");
    await old.stop();
    await writeFile(join(old.clusterDir, "pg_hba.conf"), "local all all trust\n");
    await rm(join(dataDir, "postgres-password"));

    const again = await start(dataDir);
    expect(again.said.join()).toMatch(/^setting a new password for the database, because .* is missing/);
    expect(again.password).not.toBe(old.password);
    expect(await query(again, "SELECT answer FROM kept")).toEqual([{ answer: 42 }]);
    expect(await tryToLogIn(again, "postgres", "guess")).toBe(refused);
    await again.stop();
    expect((await start(dataDir)).said).toEqual([]);
  });

  test("is not replaced while the database runs: the error says how to stop it", async () => {
    const dataDir = await makeDataFolder();
    const owner = await launchOwner(dataDir).ready;
    await owner.kill();
    const pid = await postmasterPid(owner.report);
    const kept = await readFile(join(dataDir, "postgres-password"));
    await rm(join(dataDir, "postgres-password"));
    await expect(start(dataDir)).rejects.toThrow(`stop it with "kill -INT ${pid}" and start again`);
    await writeFile(join(dataDir, "postgres-password"), kept, { mode: 0o600 });
    expect(await start(dataDir)).toMatchObject({ adopted: true });
  });

  test("is never empty: an empty file is rejected", async () => {
    const dataDir = await makeFolder();
    await writeFile(join(dataDir, "postgres-password"), "\n");
    await expect(start(dataDir)).rejects.toThrow(/postgres-password is empty: remove it/);
  });

  test.skipIf(!isRoot)(
    "is not accessible to another program of the database's system user (skipped: this is not root)",
    async () => {
      const dataDir = await makeDataFolder();
      const server = await start(dataDir);
      const { uid, gid } = await stat(server.clusterDir);
      const script = join(import.meta.dirname, "intruder.ts");
      const args = [script, server.socketDir, join(dataDir, "postgres-password")];
      const outcome = await runProgram({ uid, gid, switched: true }, process.execPath, args);
      expect(JSON.parse(outcome.output)).toEqual({ login: refused, file: "EACCES" });
    },
  );
});
