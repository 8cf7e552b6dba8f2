import { expect, test } from "vitest";
import { withLane } from "../../src/domain/lane.ts";
import { audit } from "../../src/store/audit.ts";
import { TEST_CALLER } from "../support/action.ts";
import { useOwnStore } from "../support/store.ts";
import { typeIds } from "../support/type-ids.ts";

/** The audit reads only lanes with accounts, so all are in one. */
const LANE = 7;
const store = useOwnStore();

/** An account with three ledger entries: 10, 20 and -5. */
async function accountWithRows(): Promise<string> {
  const id = withLane(typeIds.account(), LANE);
  await store.database.call("create_account", TEST_CALLER, LANE, id, "test", "free");
  for (const [i, amount] of [10n, 20n, -5n].entries())
    await store.database.call(
      "move_balance",
      TEST_CALLER,
      LANE,
      id,
      `led_${id}_${i}`,
      0,
      "adjustment",
      amount,
      `move ${i}`,
      `${i}`,
    );
  return id;
}

async function rulesBroken(accountId: string): Promise<string[]> {
  const { findings } = await audit(store.database, new AbortController().signal);
  const own = findings.filter((finding) => finding.account_id === accountId);
  for (const { detail } of own) expect(detail).not.toBe("");
  return [...new Set(own.map(({ rule }) => rule))].sort();
}

test.each<[what: string, rules: string[], sql: string]>([
  ["a raised balance", ["balance_equals_ledger"], "UPDATE vx.accounts SET balance_micros = balance_micros + 1 WHERE id = $1"],
  ["a held amount without a hold", ["held_equals_open_holds"], "UPDATE vx.accounts SET held_micros = 1 WHERE id = $1"],
  [
    "a raised amount, in row and balance",
    ["balance_after_correct", "ledger_unchanged"],
    `WITH one AS (UPDATE vx.ledger SET amount_micros = 11 WHERE account_id = $1 AND seq = 1)
            UPDATE vx.accounts SET balance_micros = balance_micros + 1 WHERE id = $1`,
  ],
  [
    "two changed amounts with the same sum",
    ["ledger_unchanged"],
    `UPDATE vx.ledger SET amount_micros = 30 - amount_micros,
              balance_after_micros = CASE seq WHEN 1 THEN 20 ELSE 30 END WHERE account_id = $1 AND seq < 3`,
  ],
  [
    "the first row deleted",
    ["balance_after_correct", "balance_equals_ledger", "ledger_complete", "ledger_unchanged", "ledger_without_gaps"],
    "DELETE FROM vx.ledger WHERE account_id = $1 AND seq = 1",
  ],
  [
    "the last row deleted",
    ["balance_equals_ledger", "ledger_complete"],
    "DELETE FROM vx.ledger WHERE account_id = $1 AND seq = 3",
  ],
  [
    "the last row and its effect deleted",
    ["ledger_complete"],
    `WITH one AS (DELETE FROM vx.ledger WHERE account_id = $1 AND seq = 3)
            UPDATE vx.accounts SET balance_micros = 30, last_seq = 2 WHERE id = $1`,
  ],
  ["all rows deleted", ["balance_equals_ledger", "ledger_complete"], "DELETE FROM vx.ledger WHERE account_id = $1"],
  [
    "a row added",
    ["balance_equals_ledger", "ledger_complete", "ledger_unchanged"],
    `INSERT INTO vx.ledger SELECT lane, account_id, 4, id || 'x', month, kind, 5, 30, reason, request_id, key_id, model,
              price_version, input, cached_input, cache_write, output, reasoning, images, image_tokens, user_id, trace_id,
              created_at, hash_version, hash
            FROM vx.ledger WHERE account_id = $1 AND seq = 3`,
  ],
  ["another number of rows", ["ledger_complete"], "UPDATE vx.accounts SET last_seq = 4 WHERE id = $1"],
])("finds %s, and nothing in another account", async (_, rules, sql) => {
  const [accountId, untouched] = [await accountWithRows(), await accountWithRows()];
  await store.owner.unsafe(sql.replaceAll("$1", `'${accountId}'`));
  expect([await rulesBroken(accountId), await rulesBroken(untouched)]).toEqual([rules, []]);
});

test("detects a change of any column of a row", async () => {
  const columns = await store.owner<{ name: string; type: string }[]>`
      SELECT column_name AS name, data_type AS type FROM information_schema.columns
      WHERE table_schema = 'vx' AND table_name = 'ledger' AND column_name NOT IN ('lane', 'account_id', 'seq')`;
  expect(columns.length).toBeGreaterThanOrEqual(15);
  const { owner } = store;
  const accountId = await accountWithRows();
  const row = owner`account_id = ${accountId} AND seq = 2`;
  await owner`CREATE TABLE vx.kept_row AS SELECT * FROM vx.ledger WHERE ${row}`;
  for (const { name, type } of columns) {
    await owner`UPDATE vx.ledger SET ${owner.unsafe(name)} = ${owner.unsafe(otherValue(name, type))} WHERE ${row}`;
    expect(await rulesBroken(accountId), name).toContain("ledger_unchanged");
    await owner`DELETE FROM vx.ledger WHERE ${row}`;
    await owner`INSERT INTO vx.ledger SELECT * FROM vx.kept_row`;
  }
  expect(await rulesBroken(accountId)).toEqual([]);
  await owner`DROP TABLE vx.kept_row`;
});

/** The smallest change of a column. */
function otherValue(name: string, type: string): string {
  if (name === "kind") return "'credit'";
  if (type === "text") return `${name} || 'x'`;
  if (["bigint", "integer", "smallint"].includes(type)) return `coalesce(${name}, 0) + 1`;
  if (type === "bytea") return `set_byte(${name}, 0, get_byte(${name}, 0) # 1)`;
  return `${name} + interval '1 microsecond'`;
}
