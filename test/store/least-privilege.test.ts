import postgres from "postgres";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { laneOfId } from "../../src/domain/lane.ts";
import { TEST_CALLER } from "../support/action.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { words } from "../support/words.ts";

const INSUFFICIENT_PRIVILEGE = "42501";

/** All functions that the server's role may execute. A new grant requires a change here. */
const GRANTED = words(`
    accept_invitation account_grants account_with accounts_to_expire accounts_with_model admit
    apply_auto_topup_page apply_payment audit audit_archived_usage audit_grants audit_limits
    audit_operator_events audit_prices audit_usage auto_topups_due bill cell_state claim_audit
    claim_deliveries claim_sign_up close_account closing_of copy_shared_data count_failures count_plans
    create_account create_first_account create_invitation create_key create_ledger_partitions create_operator
    create_sign_up_account create_sign_up_invitation create_topup create_webhook delete_invitation
    delete_limit delete_webhook disable_webhook end_page_session end_session event_position
    expire_account_grants expiring_keys export_movements export_usage failures_piece filter_entries
    find_accounts find_member find_operator find_page_session find_session forget_customer get_account
    get_account_prices get_answer get_auto_topup get_entry get_statement get_topup heartbeat hold_figures
    keep_currency lanes_in_use lanes_to_sweep last_audit ledger_range link_person list_account_prices
    list_accounts list_all_events list_all_topups list_archives list_closed_accounts list_entries list_events
    list_failures list_invitations list_members list_operator_events list_page_sessions list_person_accounts
    list_plans list_prices list_recent_entries list_topups log_opened_page log_refusal
    months_without_partition move_balance names_of open_customer_page own_holds probe_writes prove_operator
    prove_person put_auto_topup put_limit put_plan quote_hold read_all_usage read_invitation read_shared_data
    read_usage record_audit record_failures redeliver refresh_figures refund_entry register_prices
    remove_member remove_server remove_servers report_depleted report_leaks rerate_entries resume_auto_topup
    revoke_key revoke_operator rotate_key rotate_webhook schema_version search_accounts search_key_names
    search_keys search_names seconds_of_clock service_figures set_account_plan set_account_prices
    set_account_suspended set_auto_topup_page set_key_limit set_low_balance set_member_role set_operator_role
    set_topup_page set_topup_payment sign_in_operator sign_in_person sort_accounts store_attempts stored_usage
    sweep sweep_events sweep_failures top_up_after_refusal topup_charge topups_to_poll unlink_person
    unused_keys update_account update_key update_webhook use_page_link view_deliveries view_keys view_limits
    view_operators view_webhooks warn_of_expiry watched_accounts webhook_to_test withdrawn_keys
  `);

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

test("the server's role can execute only the granted functions", async () => {
  // The arguments are strings, because PostgreSQL does not call a strict function with NULL.
  const functions = await database.owner<{ name: string; granted: boolean; call: string }[]>`
    SELECT proname AS name, has_function_privilege('vx_app', pg_proc.oid, 'EXECUTE') AS granted,
           format('vx.%I(%s)', proname, (
             SELECT string_agg(CASE t WHEN 'text'::regtype THEN '''x''::text' ELSE format('NULL::%s', t::regtype) END,
                               ', ' ORDER BY n) FROM unnest(proargtypes) WITH ORDINALITY AS a (t, n))) AS call
    FROM pg_proc WHERE pronamespace = 'vx'::regnamespace ORDER BY proname`;
  expect(functions.filter(({ granted }) => granted).map(({ name }) => name)).toEqual(GRANTED);
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
  expect(role).toEqual({
    rolsuper: false,
    rolcreaterole: false,
    rolcreatedb: false,
    rolreplication: false,
    rolbypassrls: false,
    memberships: 0,
  });
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
