import { appendFile, mkdir, readdir, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { doesNotRun, findBinaryPackage } from "../../../src/database/embedded/binaries.ts";
import { EmbeddedPostgresError } from "../../../src/database/embedded/embedded-postgres.ts";
import { runProgram } from "../../../src/database/embedded/run-program.ts";
import { serverUser, unprivilegedUser } from "../../../src/database/embedded/server-user.ts";
import { cleanUp, makeDataFolder, makeFolder, patient, processesIn, start } from "./support.ts";

afterEach(cleanUp);

async function failure(work: Promise<unknown>): Promise<EmbeddedPostgresError> {
  const error = await work.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (!(error instanceof EmbeddedPostgresError)) throw new Error(`not an EmbeddedPostgresError: ${String(error)}`);
  expect(error.message).not.toContain("\n");
  return error;
}

describe("errors of the embedded database, in one line", patient, () => {
  test.each([
    ["win32", "x64"],
    ["linux", "ia32"],
    ["freebsd", "x64"],
  ])("the error for an unsupported platform names DATABASE_URL: %s-%s", async (platform, arch) => {
    expect((await failure(findBinaryPackage(platform, arch))).message).toContain("set DATABASE_URL");
  });

  test("the error for missing binaries names the package and DATABASE_URL", async () => {
    const platform = process.platform === "darwin" ? "linux" : "darwin";
    const { message } = await failure(findBinaryPackage(platform, "arm64"));
    expect(message).toContain(`@embedded-postgres/${platform}-arm64`);
    expect(message).toContain("set DATABASE_URL");
  });

  test("the error for a system without glibc, such as Alpine, names glibc and DATABASE_URL", async () => {
    const program = join(await makeFolder(), "postgres");
    await writeFile(program, "#!/lib64/missing-loader.so\n", { mode: 0o755 });
    const outcome = await runProgram(serverUser(undefined, await unprivilegedUser()), program, ["-V"]);
    const { message } = doesNotRun(outcome);
    expect(message).toContain("needs glibc");
    expect(message).toContain("set DATABASE_URL");
  });

  test("a database of another major version is rejected with both versions", async () => {
    const dataDir = await makeDataFolder();
    await writeFile(join(dataDir, "postgres", "PG_VERSION"), "16\n");
    expect((await failure(start(dataDir))).message).toContain("was made by PostgreSQL 16, but this is 18");
  });

  test("no empty database is created beside one that was replaced", async () => {
    const dataDir = await makeDataFolder();
    await rename(join(dataDir, "postgres"), join(dataDir, "postgres.replaced-20300131T150000Z"));
    expect((await failure(start(dataDir))).message).toMatch(/a replaced one in .*: rename it back/);
    expect(await readdir(dataDir)).not.toContain("postgres");
  });

  test("a folder without a database is rejected", async () => {
    const dataDir = await makeFolder();
    await mkdir(join(dataDir, "postgres"), { mode: 0o755 });
    await writeFile(join(dataDir, "postgres", "holiday.txt"), "");
    const { message } = await failure(start(dataDir));
    // If root runs the test, the owner of the folder is checked first.
    expect(message).toMatch(/is not a PostgreSQL data folder|belongs to root/);
  });

  test("the error for an invalid setting quotes PostgreSQL, and no process remains", async () => {
    const dataDir = await makeDataFolder();
    await appendFile(join(dataDir, "postgres", "postgresql.auto.conf"), "shared_buffers = 'a lot'\n");
    const { message } = await failure(start(dataDir));
    expect(message).toContain('invalid value for parameter "shared_buffers": "a lot"');
    expect(await processesIn(dataDir)).toEqual([]);
  });

  test("the error for a damaged database contains the end of its log", async () => {
    const dataDir = await makeDataFolder();
    await writeFile(join(dataDir, "postgres", "global", "pg_control"), "x".repeat(8192));
    expect((await failure(start(dataDir))).message).toMatch(/PostgreSQL did not start .*pg_control/i);
    expect(await processesIn(dataDir)).toEqual([]);
  });

  test("the error for a data folder that cannot be created names VX_DATA_DIR", async () => {
    const file = join(await makeFolder(), "file");
    await writeFile(file, "");
    expect((await failure(start(join(file, "data")))).message).toContain("set VX_DATA_DIR");
  });
});
