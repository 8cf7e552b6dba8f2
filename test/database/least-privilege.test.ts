import postgres from "postgres";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { laneOfId } from "../../src/domain/lane.ts";
import { TEST_CALLER } from "../support/action.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";

const INSUFFICIENT_PRIVILEGE = "42501";

let database: TestDatabase;
/** A login with the server's role. */
let app: postgres.Sql;

beforeAll(async () => {
  database = await createTestDatabase();
  const { address } = database;
  if (address.kind !== "socket") throw new Error("the tests use a socket");
  app = postgres({
    host: address.folder,
    username: "vx_app",
    password: inject("passwords").app,
    database: address.database,
    max: 1,
    onnotice: () => undefined,
  });
  await database.owner.unsafe(`SELECT vx.create_account('${TEST_CALLER}', vx.lane_of('acct_1'), 'acct_1', 'test', 'free')`);
  await database.owner.unsafe(
    `SELECT vx.move_balance('${TEST_CALLER}', vx.lane_of('acct_1'), 'acct_1', 'led_1', 0, 'credit', 5, 'test', '1')`,
  );
});
afterAll(async () => {
  await app.end();
  await database.drop();
});

/** The SQLSTATE with which a statement of the server's role fails. */
async function codeOf(statement: string): Promise<string | undefined> {
  try {
    await app.unsafe(statement);
    return undefined;
  } catch (error) {
    return (error as { code?: string }).code;
  }
}

test("the server's role can neither read nor write a table, so it cannot change ledger rows", async () => {
  const tables = await database.owner<{ name: string; first: string; isView: boolean }[]>`
    SELECT format('vx.%I', relname) AS name, attname AS first, relkind = 'v' AS "isView" FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid
    WHERE relnamespace = 'vx'::regnamespace AND relkind IN ('r', 'p', 'v', 'm') AND attnum = 1`;
  expect(tables.length).toBeGreaterThanOrEqual(7);
  for (const { name, first, isView } of tables) {
    for (const statement of [
      `SELECT * FROM ${name}`,
      `SELECT count(*) FROM ${name}`,
      // No role can write into a view that joins tables.
      ...(isView
        ? []
        : [
            `INSERT INTO ${name} DEFAULT VALUES`,
            `UPDATE ${name} SET ${first} = ${first}`,
            `DELETE FROM ${name}`,
            `TRUNCATE ${name} CASCADE`,
          ]),
      `DO $$ BEGIN LOCK TABLE ${name}; END $$`,
      `COPY ${name} TO STDOUT`,
    ]) {
      expect(await codeOf(statement), statement).toBe(INSUFFICIENT_PRIVILEGE);
    }
  }
});

test("the server's role can execute only the functions for the server", async () => {
  // The arguments are strings, because PostgreSQL does not call a strict function with NULL.
  const functions = await database.owner<{ name: string; isForServer: boolean; granted: boolean; call: string }[]>`
    SELECT proname AS name, prosecdef AS "isForServer", has_function_privilege('vx_app', pg_proc.oid, 'EXECUTE') AS granted,
           format('vx.%I(%s)', proname, (
             SELECT string_agg(CASE t WHEN 'text'::regtype THEN '''x''::text' ELSE format('NULL::%s', t::regtype) END,
                               ', ' ORDER BY n) FROM unnest(proargtypes) WITH ORDINALITY AS a (t, n))) AS call
    FROM pg_proc WHERE pronamespace = 'vx'::regnamespace ORDER BY proname`;
  expect(functions.filter(({ isForServer, granted }) => isForServer !== granted)).toEqual([]);
  expect(functions.filter(({ granted }) => granted).length).toBeGreaterThan(100);
  for (const { call } of functions.filter(({ granted }) => !granted)) {
    expect(await codeOf(`SELECT ${call}`), call).toBe(INSUFFICIENT_PRIVILEGE);
  }
});

test.each([
  "SET ROLE postgres",
  "SET SESSION AUTHORIZATION postgres",
  "ALTER TABLE vx.ledger OWNER TO vx_app",
  "ALTER TABLE vx.ledger DISABLE TRIGGER ALL",
  "DROP TABLE vx.ledger",
  "CREATE TABLE vx.other (x integer)",
  "CREATE FUNCTION vx.other() RETURNS integer LANGUAGE sql AS 'SELECT 1'",
  "CREATE TABLE public.other (x integer)",
  "CREATE ROLE other",
  "GRANT SELECT ON vx.ledger TO vx_app",
  "SET session_replication_role = replica",
  "COPY (SELECT 1) TO PROGRAM 'true'",
  "SELECT pg_read_file('/etc/hostname')",
])("%s is rejected", async (statement) => {
  // A GRANT without the grant option only causes a warning, so its effect is tested too.
  const code = await codeOf(statement);
  if (!statement.startsWith("GRANT")) expect(code).toBe(INSUFFICIENT_PRIVILEGE);
  expect(await codeOf("SELECT * FROM vx.ledger")).toBe(INSUFFICIENT_PRIVILEGE);
});

test("the server's role is a member of no other role and has no privileged attribute", async () => {
  const [role] = await database.owner`
    SELECT rolsuper, rolcreaterole, rolcreatedb, rolreplication, rolbypassrls,
           (SELECT count(*)::int FROM pg_auth_members WHERE member = pg_roles.oid) AS memberships
    FROM pg_roles WHERE rolname = 'vx_app'`;
  const { memberships, ...attributes } = role ?? {};
  expect([memberships, Object.keys(attributes).length, new Set(Object.values(attributes))]).toEqual([0, 5, new Set([false])]);
});

describe("SECURITY DEFINER functions", () => {
  test("have a search path without schemas in which the server's role can create objects", async () => {
    const loose = await database.owner`
      SELECT proname FROM pg_proc WHERE pronamespace = 'vx'::regnamespace AND prosecdef
        AND NOT coalesce('search_path=vx, pg_temp' = ANY (proconfig), false)`;
    expect(loose).toEqual([]);
  });

  test("do not use temporary tables of the session", async () => {
    await app.unsafe("CREATE TEMP TABLE accounts AS SELECT 1 AS lane, 'acct_1' AS id, 9 AS balance_micros");
    await app.unsafe("CREATE TEMP TABLE plans AS SELECT 'free' AS name, 9 AS rpm, 9 AS max_active_keys");
    const lane = laneOfId("acct_1");
    const [account] = await app.unsafe(`SELECT * FROM vx.get_account(${lane}::smallint, 'acct_1')`);
    const plans = await app.unsafe("SELECT name FROM vx.list_plans()");
    expect(account?.balance_micros).toBe("5");
    expect(plans).toHaveLength(3);
  });
});
