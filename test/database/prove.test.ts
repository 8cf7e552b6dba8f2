// Every function that makes a change for a caller proves the right to it first, in its own transaction.

import { randomBytes } from "node:crypto";
import type postgres from "postgres";
import { beforeEach, describe, expect, test } from "vitest";
import { type Action, type Actor, callerOf } from "../../src/database/action.ts";
import { laneOfId } from "../../src/domain/lane.ts";
import { actionOfKey, TEST_ACTION, TEST_CALLER } from "../support/action.ts";
import { untilWaiting } from "../support/database.ts";
import { createPayer, type Payer } from "../support/payer.ts";
import { useOwnStore } from "../support/store.ts";
import { words } from "../support/words.ts";

const store = useOwnStore({ connections: 4 });
const owner = () => store.owner;

/** Functions that the server may execute, that may write, and that prove nothing, by the reason. */
const WITHOUT_CALLER: Readonly<Record<string, readonly string[]>> = {
  "proofs, which the server calls alone to keep a session locked": ["prove_operator", "prove_person"],
  "look-ups that record a use": ["find_member", "find_operator", "find_page_session", "find_session"],
  "admission, and holds, which prove their key": ["admit", "bill"],
  "sign-in and sign-out, by the secret itself": ["end_session", "sign_in_operator", "sign_in_person", "use_page_link"],
  "records of refusals and failures": ["log_refusal", "record_failures", "report_depleted"],
  "what the payment provider says": words(`
    apply_auto_topup_page apply_payment forget_customer resume_auto_topup set_auto_topup_page set_topup_page
    set_topup_payment top_up_after_refusal topup_charge topups_to_poll auto_topups_due
  `),
  "deliveries of webhooks": ["claim_deliveries", "disable_webhook", "store_attempts"],
  "servers, upkeep and audits": words(`
    audit audit_grants audit_limits audit_usage claim_audit copy_shared_data create_ledger_partitions
    expire_account_grants heartbeat keep_currency probe_writes record_audit refresh_figures register_prices
    remove_servers sweep sweep_events sweep_failures unlink_person warn_of_expiry
  `),
};

type Writer = { readonly name: string; readonly types: string[]; readonly names: string[]; readonly source: string };

/** The functions whose first parameter is the caller. */
async function writers(): Promise<Writer[]> {
  return await owner()<Writer[]>`
    SELECT p.proname AS name, p.proargnames AS names, p.prosrc AS source,
           ARRAY(SELECT format_type(t, NULL) FROM unnest(p.proargtypes::oid[]) t) AS types
    FROM pg_proc p WHERE p.pronamespace = 'vx'::regnamespace AND p.prosecdef AND p.provolatile = 'v'
      AND p.proargtypes[0] = 'vx.caller'::regtype AND p.proname NOT IN ('prove_operator', 'prove_person', 'log_refusal')
    ORDER BY 1`;
}

test("every function that may write begins with the proof, or has a reason why not", async () => {
  const rows = await owner()<{ name: string }[]>`
    SELECT p.proname AS name FROM pg_proc p
    WHERE p.pronamespace = 'vx'::regnamespace AND p.prosecdef AND p.provolatile = 'v'
      AND has_function_privilege('vx_app', p.oid, 'EXECUTE') ORDER BY 1`;
  const proving = await writers();
  const exempt = Object.values(WITHOUT_CALLER).flat();
  expect(rows.map(({ name }) => name)).toEqual([...proving.map(({ name }) => name), ...exempt].sort());
  // Table locks come before all others.
  const first =
    /^\s*(SELECT prove\(|DECLARE\s+v_\w+ constant keys := prove\(|(DECLARE[^;]*;([^;]*;)*?\s*)?BEGIN\s+(--[^\n]*\s+)*(LOCK TABLE [^;]*;\s*)?PERFORM prove\()/;
  expect(proving.filter(({ source }) => !first.test(source)).map(({ name }) => name)).toEqual([]);
});

const PERSON = "usr_01kb12q4cse5fsbw0pdmm2h60v";
const OPERATOR = "op_01kb12q4cse5fsbw0pdmm2h60v";

let payer: Payer;
let session: string;
let token: string;
let operatorSession: string;

const bytes = (hex: string) => Buffer.from(hex, "hex");

beforeEach(async () => {
  payer = await createPayer(store.database, 0n);
  [session, token, operatorSession] = [1, 2, 3].map(() => randomBytes(32).toString("hex")) as [string, string, string];
  await owner()`DELETE FROM vx.operator_sessions`;
  await owner()`DELETE FROM vx.operators`;
  await owner()`DELETE FROM vx.page_sessions`;
  await owner()`DELETE FROM vx.people`;
  const lane = laneOfId(payer.accountId);
  await owner()`
    INSERT INTO vx.people (id, issuer, subject, email, created_at, signed_in_at) VALUES (${PERSON}, 'i', 's', '', now(), now())`;
  await owner()`
    INSERT INTO vx.page_sessions (fingerprint, id, person_id, created_at, used_at, user_agent, address)
    VALUES (${bytes(session)}, 'pses_1', ${PERSON}, now(), now(), '', '')`;
  await owner()`
    INSERT INTO vx.members (lane, account_id, person_id, email, role, joined_at, link_id)
    VALUES (${lane}, ${payer.accountId}, ${PERSON}, '', 'owner', now(), 'sign-up')`;
  await owner()`
    INSERT INTO vx.operators (id, name, role, email, fingerprint, created_at) VALUES (${OPERATOR}, 'ada', 'admin', '', ${bytes(token)}, now())`;
  await owner()`INSERT INTO vx.operator_sessions VALUES (${bytes(operatorSession)}, ${OPERATOR}, now(), now())`;
});

const READ = 2;
const as = (actor: Partial<Actor> & Pick<Actor, "kind">): Action => ({ ...TEST_ACTION, actor: { id: "", name: "", ...actor } });
const key = () => {
  const action = actionOfKey(payer);
  return { ...action, actor: { ...action.actor, scope: READ } };
};
const member = () =>
  as({ kind: "member", id: PERSON, accountId: payer.accountId, fingerprint: session, role: "owner", coveredScopes: 31 });
const person = () => as({ kind: "person", id: PERSON, fingerprint: session });
const operator = () => as({ kind: "operator", id: OPERATOR, fingerprint: token, role: "admin" });
const signedIn = () => as({ kind: "operator_session", id: OPERATOR, fingerprint: operatorSession, role: "admin" });

const change = (table: string, sets: string, id: () => string) => (sql: postgres.ISql) =>
  sql.unsafe(`UPDATE vx.${table} SET ${sets} WHERE ${table === "members" ? "person_id" : "id"} = '${id()}'`);
const ofKey = (sets: string) => change("keys", sets, () => payer.keyId);
const suspend = change("accounts", "suspended_at = now()", () => payer.accountId);
const revokeOperator = change("operators", "revoked_at = now()", () => OPERATOR);
const endAll = (table: string) => (sql: postgres.ISql) => sql.unsafe(`DELETE FROM vx.${table}`);

const WITHDRAWALS: readonly [string, () => Action, string, (sql: postgres.Sql) => PromiseLike<unknown>][] = [
  ["a revoked key", key, "revoked_api_key", ofKey("revoked_at = now()")],
  ["an expired key", key, "expired_api_key", ofKey("expires_at = now()")],
  ["a key whose secret was replaced", key, "invalid_api_key", ofKey("fingerprint = sha256('other')")],
  ["a key without the scope", key, "insufficient_scope", ofKey("scopes = 1")],
  ["a key with other address ranges", key, "address_not_allowed", ofKey("allowed_cidrs = '{192.0.2.0/24}'")],
  ["a key of a suspended account", key, "account_suspended", suspend],
  ["a member who was removed", member, "not_found", endAll("members")],
  ["a member with another role", member, "insufficient_role", change("members", "role = 'viewer'", () => PERSON)],
  ["a member whose session was ended", member, "invalid_session", endAll("page_sessions")],
  ["a member of a suspended account", member, "account_suspended", suspend],
  ["a person whose session was ended", person, "invalid_session", endAll("page_sessions")],
  ["an operator who was revoked", operator, "invalid_operator_token", revokeOperator],
  ["an operator with another role", operator, "insufficient_role", change("operators", "role = 'support'", () => OPERATOR)],
  ["an operator whose session was ended", signedIn, "invalid_operator_token", endAll("operator_sessions")],
];

/** Calls a function for the caller, in the lane of the account; its other parameters are NULL. */
async function callFor(action: Action, { name, types, names }: Writer, sql: postgres.ISql = owner()): Promise<string> {
  const values = types.map((type, i) => {
    if (i === 0) return `'${callerOf(action).replaceAll("'", "''")}'::vx.caller`;
    if (names[i] === "p_lane") return `${laneOfId(payer.accountId)}::smallint`;
    // An empty account means that a webhook or its events belong to no account.
    // A re-rating without it only reads.
    if (names[i] === "p_apply") return "true";
    return names[i] === "p_account_id" ? `'${payer.accountId}'` : `NULL::${type}`;
  });
  try {
    await sql.unsafe(`SELECT * FROM vx.${name}(${values.join(", ")})`);
    return "done";
  } catch (error) {
    return (error as Error).message;
  }
}

async function functionsFor({ actor }: Action): Promise<Writer[]> {
  const isOfAccount = ["key", "member"].includes(actor.kind);
  return (await writers()).filter(({ names }) => names.includes("p_lane") || !isOfAccount);
}

test.each(WITHDRAWALS)("no function writes for %s", async (_, actionOf, reason, withdraw) => {
  const functions = await functionsFor(actionOf());
  expect(functions.length).toBeGreaterThan(5);
  await withdraw(owner());
  const after = await Promise.all(functions.map(async (one) => [one.name, await callFor(actionOf(), one)]));
  expect(after).toEqual(functions.map(({ name }) => [name, reason]));
});

test.each([
  ["a key", key],
  ["a member", member],
  ["a person", person],
  ["an operator", operator],
  ["an operator who signed in", signedIn],
])("what a function refuses %s is not the right", async (_, actionOf) => {
  const outcomes = await Promise.all((await functionsFor(actionOf())).map((one) => callFor(actionOf(), one)));
  const reasons = WITHDRAWALS.filter(([, ofCase]) => ofCase === actionOf).map(([, , reason]) => reason);
  expect(reasons.filter((reason) => reason !== "not_found" && outcomes.includes(reason))).toEqual([]);
});

async function setLowBalance(action: Action, sql: postgres.ISql): Promise<void> {
  const lane = laneOfId(payer.accountId);
  await sql`SELECT vx.update_account(${callerOf(action)}, ${lane}::smallint, ${payer.accountId}, '{"low_balance_micros":1}')`;
}

test.each<[string, () => Action, keyof Actor, string]>([
  ["a key without its secret", key, "fingerprint", "invalid_api_key"],
  ["a member without a role", member, "role", "insufficient_role"],
  ["an operator without a token", operator, "fingerprint", "invalid_operator_token"],
  ["an operator without a role", operator, "role", "insufficient_role"],
])("%s has no right", async (_, actionOf, omitted, reason) => {
  const action = actionOf();
  const incomplete = { ...action, actor: { ...action.actor, [omitted]: undefined } };
  await setLowBalance(action, owner());
  await expect(setLowBalance(incomplete, owner())).rejects.toThrow(reason);
});

describe("a change and the withdrawal of its right wait for each other:", () => {
  const lane = () => laneOfId(payer.accountId);
  const of = (call: () => string) => (sql: postgres.ISql) =>
    sql.unsafe(`SELECT vx.${call().replace("$act", `'${TEST_CALLER}', ${lane()}::smallint`)}`);
  const CASES: readonly [string, () => Action, (sql: postgres.ISql) => PromiseLike<unknown>, string][] = [
    ["a key and its revocation", key, of(() => `revoke_key($act, '${payer.keyId}')`), "revoked_api_key"],
    [
      "a key and its rotation",
      key,
      of(() => `rotate_key($act, '${payer.keyId}', sha256('x'), 'abcd', 'wxyz', 0)`),
      "expired_api_key",
    ],
    ["a key and the suspension", key, of(() => `set_account_suspended($act, '${payer.accountId}', true)`), "account_suspended"],
    ["a member and another role", member, of(() => `set_member_role($act, '${payer.accountId}', '${PERSON}', 'owner')`), "done"],
    ["a member and the end of the session", member, endAll("page_sessions"), "invalid_session"],
    ["an operator and the revocation", operator, revokeOperator, "invalid_operator_token"],
    ["an operator and the end of the session", signedIn, endAll("operator_sessions"), "invalid_operator_token"],
  ];

  /** Runs the second while the first has not committed, and returns once the second waits. */
  async function inOrder(
    first: (sql: postgres.ISql) => PromiseLike<unknown>,
    second: (sql: postgres.ISql) => PromiseLike<unknown>,
  ): Promise<string> {
    const { waiting } = await owner().begin(async (sql) => {
      await first(sql);
      const waiting = Promise.resolve(second(owner())).then(
        () => "done",
        (error: Error) => error.message,
      );
      await untilWaiting(store);
      return { waiting };
    });
    return await waiting;
  }

  test.each(CASES)("%s", async (_, actionOf, withdraw) => {
    expect(await inOrder((sql) => setLowBalance(actionOf(), sql), withdraw)).toBe("done");
  });

  test.each(CASES)("the reverse: %s", async (_, actionOf, withdraw, reason) => {
    expect(await inOrder(withdraw, (sql) => setLowBalance(actionOf(), sql))).toBe(reason);
  });
});
