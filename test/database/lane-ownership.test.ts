import { expect, test } from "vitest";
import { admitItem, failureItem, failureMinute } from "../../src/database/driver/batcher.ts";
import type { Parameter } from "../../src/database/driver/connection.ts";
import { LaneMoved } from "../../src/database/driver/store-error.ts";
import { laneOfId } from "../../src/domain/lane.ts";
import { arrayOfEnds, arrayOfHolds } from "../../src/generations/bill-statement.ts";
import { TEST_CALLER } from "../support/action.ts";
import { dumpTables } from "../support/database.ts";
import { createPayer, endOf, holdOf, type Payer, payerOf, placeHold } from "../support/payer.ts";
import { createTestBilling, useOwnStore } from "../support/store.ts";

const store = useOwnStore();

/** The parameters of each function that writes about a lane. */
function writesOf(payer: Payer, generationId: string): Record<string, Parameter[]> {
  const { accountId, keyId } = payer;
  const lane = laneOfId(accountId);
  const item = {
    lane,
    fingerprint: { hex: "00".repeat(32) },
    generate: 0,
    read: 1,
    keys: 0,
    webhooks: 0,
    billing: 0,
    any_scope: 0,
  };
  const ends = arrayOfEnds([{ kind: "end", lane, end: endOf(payer, generationId, 10n) }]);
  const holds = arrayOfHolds([{ kind: "hold", lane, hold: holdOf(payer, 5n) }]);
  const visible = ["abcd", "wxyz"];
  const act = TEST_CALLER;
  return {
    accept_invitation: [act, lane, accountId, "inv_x", new Uint8Array(32), "", "lnk_x"],
    create_invitation: [act, lane, accountId, "inv_x", new Uint8Array(32), "owner", ""],
    create_sign_up_account: [act, lane, accountId, "new", "free", "", act, "led_x", 1, 0n, null],
    delete_invitation: [act, lane, accountId, "inv_x"],
    find_member: [lane, accountId, "usr_x", ""],
    log_opened_page: [act, lane, accountId],
    remove_member: [act, lane, accountId, "usr_x"],
    set_member_role: [act, lane, accountId, "usr_x", "viewer"],
    admit: [admitItem.arrayOf([item])],
    bill: ["one", null, `{${lane},${(lane + 1) % 1_024}}`, ends, holds],
    apply_auto_topup_page: [lane, accountId, "cs_x", new Date(0), "cus_x", true, null, null],
    apply_payment: [lane, accountId, 0n, "{}"],
    close_account: [act, lane, accountId, "test", "", null, true, 10],
    create_account: [act, lane, accountId.replace(/^acct_../, "acct_zz"), "new", "pro", "{}"],
    create_key: [act, lane, accountId, JSON.stringify({ id: keyId, name: "new", scopes: 1 }), 1],
    create_topup: [act, lane, accountId, "top_x", 1n, "usd", "", false, null],
    create_webhook: [act, lane, accountId, "wh_x", "https://example.com/", "", "", 16],
    delete_limit: [act, lane, keyId, "lim_x"],
    delete_webhook: [act, lane, accountId, "wh_x"],
    disable_webhook: [lane, "wh_x", 0, "gone"],
    expire_account_grants: [lane, accountId],
    forget_customer: [lane, accountId, "cus_x"],
    log_refusal: [act, lane, accountId, "insufficient_role"],
    move_balance: [act, lane, accountId, "led_x", 1, "credit", 1n, "test", "new"],
    record_failures: [
      failureMinute.arrayOf([{ lane, account_id: accountId, id: "fail_0", at_ms: 0, calls: 0, omitted: 1 }]),
      failureItem.arrayOf([]),
      600,
    ],
    put_limit: [act, lane, accountId, '{"metric":"cost","period":"day","amount":1,"model":"","per_user":false}'],
    put_auto_topup: [act, lane, accountId, true, 1n, 1n, 1n, "usd"],
    redeliver: [act, "wh_x", "", lane, accountId, "evt_x", new Date(0), new Date(0), 1_023, 0n, "", 10, true],
    refund_entry: [act, lane, accountId, "led_x", 1, 0n, "test", "key"],
    report_depleted: [lane, accountId, 1n],
    report_leaks: [act, lane, "[]"],
    rerate_entries: [act, lane, accountId, 1n, 2n, "m", "{}", "rer_x", "test", true, 10],
    resume_auto_topup: [lane, accountId],
    revoke_key: [act, lane, keyId],
    rotate_key: [act, lane, keyId, new Uint8Array(32), ...visible, 60],
    rotate_webhook: [act, lane, accountId, "wh_x", 60],
    set_account_plan: [act, lane, accountId, "free"],
    set_account_prices: [act, lane, accountId, "", 1, null],
    set_account_suspended: [act, lane, accountId, true],
    set_auto_topup_page: [lane, accountId, "usd", "cus_x", null, null, null],
    set_key_limit: [act, lane, keyId, 1],
    set_topup_page: [lane, "top_x", "cs_x", ""],
    set_topup_payment: [lane, "top_x", "pi_x"],
    top_up_after_refusal: [lane, accountId],
    topup_charge: [lane, "top_x"],
    update_account: [act, lane, accountId, '{"name":"new"}'],
    update_key: [act, lane, keyId, '{"name":"new"}'],
    update_webhook: [act, lane, accountId, "wh_x", "{}"],
    warn_of_expiry: [lane, keyId],
    webhook_to_test: [act, lane, accountId, "wh_x"],
  };
}

/** The parameters of functions that only read, but whose results have to be complete. */
const READS: Record<string, (lane: number, accountId: string) => Parameter[]> = {
  accounts_with_model: (lane) => [lane, "m", 0, 1, "", 1],
  export_movements: (lane, accountId) => [lane, accountId, new Date(0), new Date(1), "", 0n, 1],
  export_usage: (lane, accountId) => [lane, accountId, 0, 1, "", 1],
  ledger_range: (lane, accountId) => [lane, accountId, null, null],
};

/** These write about a lane too, in ways that need no resending. */
const OTHERS = ["create_first_account", "sweep"];

/** These lock the ledger, but write nothing. */
const READERS = ["audit", "audit_grants", "audit_limits", "audit_usage"];

test("a lane that another cell owns is refused by every function that writes, before its first write, and by reads that have to be complete", async () => {
  const payer = await createPayer(store.database, 1_000n);
  const billing = createTestBilling(store.database);
  const generationId = await placeHold(billing, payer, 50n);
  const lane = laneOfId(payer.accountId);
  const setOwned = async (isOwned: boolean) => {
    await store.owner`UPDATE vx.lanes SET is_owned = ${isOwned}, epoch = epoch + 1 WHERE lane = ${lane}`;
  };
  await setOwned(false);
  const before = await dumpTables(store);
  for (const [name, parameters] of Object.entries(writesOf(payer, generationId))) {
    await expect(store.database.call(name, ...parameters), name).rejects.toBeInstanceOf(LaneMoved);
  }
  for (const [name, parametersOf] of Object.entries(READS)) {
    const read = store.database.call(name, ...parametersOf(lane, payer.accountId));
    await expect(read, name).rejects.toBeInstanceOf(LaneMoved);
  }
  await store.owner`DELETE FROM vx.servers`;
  expect(await store.database.call("lanes_to_sweep", 0, 1_023)).toEqual([]);
  expect(await store.database.call("sweep", lane)).toEqual([{ sweep: 0n }]);
  expect(await store.database.call("own_holds", "one", 0, 1_023)).toEqual([]);
  const servers = (line: string) => line.startsWith("(one,");
  const linesOf = (text: string) => text.split("\n").filter((line) => !servers(line));
  expect(linesOf(await dumpTables(store))).toEqual(linesOf(before));

  await setOwned(true);
  expect((await billing.end(endOf(payer, generationId, 10n))).outcome).toBe("settled");
});

test("every function that writes about a lane is in the table of this test", async () => {
  const rows = await store.owner<{ name: string }[]>`
    SELECT proname AS name FROM pg_proc
    WHERE pronamespace = 'vx'::regnamespace AND prosecdef AND provolatile = 'v'
      AND (proargnames && '{p_lane,p_lanes}' OR proname IN ('admit', 'record_failures')) ORDER BY proname`;
  const payer = payerOf("acct_00000000000000000000000000", "key_00000000000000000000000000");
  const known = [...Object.keys(writesOf(payer, "gen_x")), ...OTHERS, ...READERS].sort();
  expect(rows.map(({ name }) => name)).toEqual(known);
});
