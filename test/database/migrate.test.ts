import { randomBytes } from "node:crypto";
import { describe, expect, inject, onTestFinished, test, vi } from "vitest";
import { MeService } from "../../gen/vx/v1/me_pb.js";
import packageJson from "../../package.json" with { type: "json" };
import { auditDatabases } from "../../src/app/audit-embedded.ts";
import { connect, type DatabaseAddress, type Sql } from "../../src/database/driver/connect.ts";
import { migrate } from "../../src/database/schema/migrate.ts";
import { MigrationError } from "../../src/database/schema/release.ts";
import { readFiles, readFunctions, splitFunctions } from "../../src/database/schema/sql-files.ts";
import { lockTables, withShortWaits } from "../../src/database/schema/table-locks.ts";
import { spawnVx } from "../cli/support.ts";
import { startTestApp } from "../support/app.ts";
import { createTestDatabase, functionsOf } from "../support/database.ts";
import { createTestKey, operatorOf } from "../support/fixtures.ts";
import { createNextRelease } from "../support/next-release.ts";
import { bearer, protocols } from "../support/protocols.ts";
import { started } from "../support/started.ts";

const PASSWORD = "password-of-the-tests";

const schema = new URL("../../src/database/schema/", import.meta.url);
const tables = readFiles(new URL("tables/", schema)).map(({ name }) => name);
const functions = readFunctions().map(({ name }) => name);

/** A database of its own for a test. */
async function createDatabase(template: string) {
  const database = await createTestDatabase({ template });
  onTestFinished(database.drop);
  const as = (user: string): DatabaseAddress => {
    if (database.address.kind !== "socket") throw new Error("the tests use a socket");
    return { ...database.address, user, password: user === "postgres" ? inject("passwords").owner : PASSWORD };
  };
  return { ...database, as, migrate: () => migrate(as("postgres")), failure: () => failureOf(as("postgres")) };
}

test("concurrent servers on an empty database create one schema", async () => {
  const { owner, migrate } = await createDatabase("template0");
  await Promise.all(Array.from({ length: 3 }, () => migrate()));
  const applied = await owner`SELECT version, name FROM vx.migrations ORDER BY version`;
  expect([...applied]).toEqual(tables.map((name, i) => ({ version: i + 1, name })));
  expect((await owner`SELECT name FROM vx.functions ORDER BY name`).map(({ name }) => name)).toEqual(functions);
  expect(await owner`SELECT name FROM vx.plans ORDER BY name`).toHaveLength(3);
});

test("the numbers of table migrations have no gaps", () => {
  const numbers = tables.map((name) => Number(/^(\d{4})_[a-z_]+$/.exec(name)?.[1]));
  expect(numbers).toEqual(tables.map((_, i) => i + 1));
});

describe("a file of functions", () => {
  const one =
    "-- One.\nCREATE OR REPLACE FUNCTION one(p_text text DEFAULT ';') RETURNS text\n  LANGUAGE sql AS $$ SELECT 1; -- it's\n$$;\n";
  const two = "-- Two; of one line.\nCREATE OR REPLACE FUNCTION two() RETURNS integer\n  -- a comment; with a $$\n  RETURN 1;\n";

  test("is cut into functions with their comments", () => {
    const found = splitFunctions("some.sql", `-- A header.\n\n${one}\n${two}`);
    expect(found.map(({ name, sql }) => [name, sql])).toEqual([
      ["one", one],
      ["two", two],
    ]);
  });

  test.each([
    ["no header", one, "line 1"],
    ["a function without a comment", `-- A header.\n\n${two}\n${one.replace("-- One.\n", "")}`, "line 8"],
    ["another statement", `-- A header.\n\n${one}\nSELECT 1;\n`, "line 8"],
    ["a statement below a function", `-- A header.\n\n${one}SELECT 1;\n`, "line 3"],
    ["a function without an end", `-- A header.\n\n${one.slice(0, -5)}`, "line 3"],
  ])("is refused with %s", (_, text, line) => {
    expect(() => splitFunctions("some.sql", text)).toThrow(`${line} of some.sql does not begin a function with a comment`);
  });

  test("no function stands in two files", () => {
    expect(new Set(functions).size).toBe(functions.length);
  });
});

test("a second migration changes nothing", async () => {
  const { owner, migrate } = await createDatabase("vx_template");
  const read = async () => [
    ...(await owner`SELECT name, applied_at FROM vx.migrations`),
    ...(await owner`SELECT name, applied_at FROM vx.functions ORDER BY name`),
  ];
  const before = await read();
  await migrate();
  expect(await read()).toEqual(before);
});

test("changed functions are replaced, and functions without a file are dropped", async () => {
  const { owner, migrate } = await createDatabase("vx_template");
  await owner`CREATE OR REPLACE FUNCTION vx.schema_version() RETURNS TABLE (version integer, release text,
    oldest_release text) LANGUAGE sql AS $$ SELECT 1, '0.0.9', '0.0.9' $$`;
  await owner`UPDATE vx.functions SET checksum = 'old' WHERE name = 'schema_version'`;
  await owner`CREATE FUNCTION vx.dropped_later() RETURNS integer LANGUAGE sql AS $$ SELECT 1 $$`;
  await owner`INSERT INTO vx.functions VALUES ('dropped_later', 'any', now())`;
  await migrate();
  const [state] = await owner`SELECT release FROM vx.schema_version()`;
  expect(state?.release).toBe(packageJson.version);
  expect(await owner`SELECT FROM pg_proc WHERE proname = 'dropped_later'`).toHaveLength(0);
  const [granted] = await owner`SELECT has_function_privilege('vx_app', 'vx.schema_version()', 'EXECUTE') AS ok`;
  expect(granted?.ok).toBe(true);
});

test("when the parameters of a function change, only the new form remains", async () => {
  const { owner, migrate } = await createDatabase("vx_template");
  const before = await functionsOf(owner);
  // One is left from an earlier migration, the other is replaced by this one.
  await owner`CREATE FUNCTION vx.list_plans(p_old text) RETURNS integer LANGUAGE sql AS $$ SELECT 1 $$`;
  await owner`DROP FUNCTION vx.hold_figures()`;
  await owner`CREATE FUNCTION vx.hold_figures(p_old text) RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN RETURN 1; END $$`;
  await owner`UPDATE vx.functions SET checksum = 'old' WHERE name = 'hold_figures'`;
  await migrate();
  expect(await functionsOf(owner)).toEqual(before);
});

test("when the result of a function or the name of a parameter changes, the function is created anew", async () => {
  const { owner, migrate } = await createDatabase("vx_template");
  const before = await functionsOf(owner);
  await owner`DROP FUNCTION vx.hold_figures()`;
  await owner`CREATE FUNCTION vx.hold_figures() RETURNS text LANGUAGE sql AS $$ SELECT '' $$`;
  await owner`DROP FUNCTION vx.mailbox_of(text)`;
  await owner`CREATE FUNCTION vx.mailbox_of(p_other text) RETURNS text LANGUAGE sql AS $$ SELECT '' $$`;
  await owner`UPDATE vx.functions SET checksum = 'old' WHERE name IN ('hold_figures', 'mailbox_of')`;
  await migrate();
  expect(await functionsOf(owner)).toEqual(before);
});

test("an older server starts on a newer schema without changing it, unless the schema requires a newer server", async () => {
  const { owner, migrate, failure } = await createDatabase("vx_template");
  await owner`INSERT INTO vx.releases VALUES ('9.0.0', '0.1.0', clock_timestamp())`;
  await owner`INSERT INTO vx.migrations VALUES (9999, '9999_future', '', now())`;
  await owner`UPDATE vx.functions SET checksum = 'newer' WHERE name = 'admit'`;
  await migrate();
  const [admit] = await owner`SELECT checksum FROM vx.functions WHERE name = 'admit'`;
  expect(admit?.checksum).toBe("newer");
  await owner`UPDATE vx.releases SET oldest_release = '8.2.0' WHERE release = '9.0.0'`;
  expect((await failure())?.message).toBe(
    `the database was migrated by release 9.0.0, which needs servers of release 8.2.0 or newer; this is ${packageJson.version}`,
  );
});

test("a database of a newer version is rejected and not changed", async () => {
  const { owner, failure } = await createDatabase("vx_template");
  await owner`INSERT INTO vx.migrations VALUES (9999, '9999_future', '', now())`;
  const error = await failure();
  expect(error).toBeInstanceOf(MigrationError);
  expect(error?.message).toMatch(/the database is newer than this code: .*9999/);
});

test("a schema from before the first release is rejected with a specific error", async () => {
  const { owner, failure } = await createDatabase("template0");
  await owner`CREATE SCHEMA vx`;
  await owner`CREATE FUNCTION vx.schema_version() RETURNS integer LANGUAGE sql AS $$ SELECT 5 $$`;
  expect((await failure())?.message).toMatch(/older than the first release .*VX_DATA_DIR$/);
});

test("a migration that fails is rolled back completely", async () => {
  const { owner, migrate, failure } = await createDatabase("template0");
  await owner`CREATE SCHEMA vx`;
  await owner`CREATE TABLE vx.ledger (in_the_way integer)`;
  expect(await failure()).toBeInstanceOf(MigrationError);
  const present = await owner`SELECT tablename FROM pg_tables WHERE schemaname = 'vx' ORDER BY tablename`;
  expect(present.map(({ tablename }) => tablename)).toEqual(["functions", "ledger", "migrations", "releases"]);
  await owner`DROP TABLE vx.ledger`;
  await migrate();
  expect(await owner`SELECT version FROM vx.migrations`).toHaveLength(tables.length);
});

test("a migration and a batch of calls that needs more tables do not wait for each other", async () => {
  const next = createNextRelease();
  onTestFinished(next.remove);
  const { owner, url } = await createDatabase("vx_template");
  const isWaiting = async () => {
    const locks = await owner`SELECT FROM pg_locks WHERE NOT granted AND database = (
      SELECT oid FROM pg_database WHERE datname = current_database())`;
    expect(locks).not.toHaveLength(0);
  };
  const migration = await owner.begin(async (transaction) => {
    await transaction`SELECT FROM vx.lanes WHERE lane = 7 FOR UPDATE`;
    const ended = spawnVx(["migrate"], { DATABASE_URL: url }, [], next.program);
    await vi.waitFor(isWaiting);
    for (const table of ["accounts", "answers", "holds", "ledger"]) {
      await transaction.unsafe(`LOCK TABLE vx.${table} IN ROW EXCLUSIVE MODE`);
    }
    return { ended };
  });
  expect(await migration.ended).toMatchObject({ code: 0, stderr: "" });
  expect(await owner`SELECT FROM vx.migrations`).toHaveLength(tables.length + 1);
});

test("tables that another session keeps locked during the first attempt are locked in a later one, and the transaction commits", async () => {
  const { owner } = await createDatabase("vx_template");
  const waiting = async () => (await owner`SELECT FROM pg_locks WHERE NOT granted AND locktype = 'relation'`).length;
  const { ended } = await owner.begin(async (reader) => {
    await reader`SELECT FROM vx.ledger`;
    const locking = owner.begin(async (transaction) => {
      await lockTables(transaction as unknown as Sql, "vx", 300);
      await transaction`CREATE TABLE vx.made (id integer)`;
    });
    await expect.poll(waiting).toBeGreaterThan(0);
    await expect.poll(waiting).toBe(0);
    return { ended: locking };
  });
  await ended;
  expect(await owner`SELECT FROM vx.made`).toHaveLength(0);
});

test("a migration that cannot lock the tables names the session that keeps them locked", async () => {
  const { owner } = await createDatabase("vx_template");
  await owner.begin(async (reader) => {
    await reader`SELECT FROM vx.ledger`;
    const [{ pid } = { pid: 0 }] = await reader<{ pid: number }[]>`SELECT pg_backend_pid() AS pid`;
    const locking = owner.begin((transaction) => lockTables(transaction as unknown as Sql, "vx", 1));
    await expect(locking).rejects.toThrow(
      new RegExp(`^the backend ${pid} .* keeps the tables of the schema locked.*pg_terminate_backend`),
    );
  });
});

test("a statement that fails while it waits only shortly for locks leaves the lock timeout of its session as it was", async () => {
  const { as } = await createDatabase("vx_template");
  const sql = await connect(as("postgres"), { statementTimeoutMs: 10_000, name: "test" });
  await expect(withShortWaits(sql, "vx", 1, () => sql`SELECT 1 / 0`)).rejects.toThrow("division by zero");
  expect([...(await sql`SHOW lock_timeout`)]).toEqual([{ lock_timeout: "0" }]);
  await sql.end();
});

test("the error for an unreachable database is one line", async () => {
  const nowhere: DatabaseAddress = { kind: "socket", folder: "/nonexistent", user: "x", database: "x" };
  const failure = await failureOf(nowhere);
  expect(failure).toBeInstanceOf(MigrationError);
  expect(failure?.message).toMatch(/^the database cannot be reached or prepared: .*ENOENT/);
});

/** A login without rights, and a database with vx whose owner manages it. */
function useLogin(attributes: string) {
  const login = `login_${randomBytes(6).toString("hex")}`;
  const admin = started(async () => {
    const database = await createTestDatabase();
    await database.owner.unsafe(`CREATE ROLE ${login} LOGIN ${attributes} PASSWORD '${PASSWORD}'`);
    const drop = async () => {
      await database.owner.unsafe(`DROP ROLE ${login}`);
      await database.drop();
    };
    return { ...database, drop };
  });
  return { login, admin };
}

describe("a login that does not own the database", () => {
  const { login, admin } = useLogin("");

  test.each(["template0", "vx_template"])("is rejected with the reason on a copy of %s", async (template) => {
    const { as } = await createDatabase(template);
    const failure = await failureOf(as(login));
    expect(failure).toBeInstanceOf(MigrationError);
    expect(failure?.message).toMatch(/this login may not .*permission denied/);
  });

  test("can start a server on an up-to-date schema after a grant of vx_app", async () => {
    await admin.owner.unsafe(`GRANT vx_app TO ${login}`);
    const url = admin.url.replace(/user=.*/, `user=${login}&password=${PASSWORD}`);
    const app = await startTestApp({ database: { ...admin, url } });
    const key = await createTestKey(operatorOf(app));
    const caller = protocols[0]?.open(app.url);
    const outcome = await caller?.call(MeService.method.getMe, {}, bearer(key.secret));
    caller?.close();
    await app.stop();
    expect(outcome).toMatchObject({ ok: true });
  });
});

describe("an owner of the database who is no superuser", () => {
  const { login, admin } = useLogin("CREATEROLE");

  /** As PostgreSQL 16 and newer grant it to the login that creates the role. */
  const AS_CREATOR = "WITH ADMIN TRUE, SET FALSE, INHERIT FALSE";

  test("may assume the role of the servers after a migration, also of a copy, and audits without the role", async () => {
    const { owner, as } = await createDatabase("template0");
    const address = as(login);
    await owner.unsafe(`DO $$ BEGIN EXECUTE format('ALTER DATABASE %I OWNER TO ${login}', current_database()); END $$`);
    for (const _ of ["empty", "up to date"]) {
      await admin.owner.unsafe(`REVOKE vx_app FROM ${login} CASCADE; GRANT vx_app TO ${login} ${AS_CREATOR}`);
      expect(await failureOf(address)).toBeUndefined();
      const sql = await connect(address, { statementTimeoutMs: 10_000, name: "test", role: "vx_app" });
      expect([...(await sql`SELECT current_user AS name`)]).toEqual([{ name: "vx_app" }]);
      await sql.end();
    }
    await admin.owner.unsafe(`REVOKE vx_app FROM ${login} CASCADE`);
    expect((await failureOf(address))?.message).toMatch(/GRANT vx_app to this login/);
    const { signal } = new AbortController();
    const report = await auditDatabases([{ address }], { signal, onProgress: () => undefined });
    expect(report).toMatchObject({ findings: [] });
  });
});

async function failureOf(address: DatabaseAddress): Promise<Error | undefined> {
  return await migrate(address).then(
    () => undefined,
    (error: Error) => error,
  );
}
