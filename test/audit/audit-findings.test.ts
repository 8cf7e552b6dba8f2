import { expect, test } from "vitest";
import { createPayer, move } from "../support/payer.ts";
import { findingsOf, useOwnStore } from "../support/store.ts";
import { words } from "../support/words.ts";

const store = useOwnStore();

/** An account with three ledger entries: 10, 20 and -5. */
async function accountWithRows(): Promise<string> {
  const { accountId } = await createPayer(store.database, 0n, 7);
  for (const micros of [10n, 20n, -5n]) await move(store.database, accountId, micros);
  return accountId;
}

async function rulesOf(accountId: string): Promise<string[]> {
  const findings = await findingsOf(store.database, accountId);
  for (const { detail } of findings) expect(detail).not.toBe("");
  return [...new Set(findings.map(({ rule }) => rule))].sort();
}

const setBalance = (set: string) => `UPDATE vx.accounts SET balance_micros = ${set} WHERE id = $1`;
const deleteRow = (which: string) => `DELETE FROM vx.ledger WHERE account_id = $1${which}`;
const raised = "UPDATE vx.ledger SET amount_micros = 11 WHERE account_id = $1 AND seq = 1";
const exchanged = `UPDATE vx.ledger SET amount_micros = 30 - amount_micros,
  balance_after_micros = CASE seq WHEN 1 THEN 20 ELSE 30 END WHERE account_id = $1 AND seq < 3`;
const added = `INSERT INTO vx.ledger SELECT r.* FROM vx.ledger l CROSS JOIN LATERAL jsonb_populate_record(l,
  jsonb_build_object('seq', 4, 'id', l.id || 'x', 'amount_micros', 5, 'balance_after_micros', 30)) r
  WHERE l.account_id = $1 AND l.seq = 3`;
const ALL = "balance_after_correct balance_equals_ledger ledger_complete ledger_unchanged ledger_without_gaps";

test.each([
  ["a raised balance", setBalance("balance_micros + 1"), "balance_equals_ledger"],
  ["a held amount without a hold", "UPDATE vx.accounts SET held_micros = 1 WHERE id = $1", "held_equals_open_holds"],
  [
    "a raised amount, in row and balance",
    `${raised}; ${setBalance("balance_micros + 1")}`,
    "balance_after_correct ledger_unchanged",
  ],
  ["two changed amounts with the same sum", exchanged, "ledger_unchanged"],
  ["the first row deleted", deleteRow(" AND seq = 1"), ALL],
  ["the last row deleted", deleteRow(" AND seq = 3"), "balance_equals_ledger ledger_complete"],
  ["the last row and its effect deleted", `${deleteRow(" AND seq = 3")}; ${setBalance("30, last_seq = 2")}`, "ledger_complete"],
  ["all rows deleted", deleteRow(""), "balance_equals_ledger ledger_complete"],
  ["a row added", added, "balance_equals_ledger ledger_complete ledger_unchanged"],
  ["another number of rows", setBalance("balance_micros, last_seq = 4"), "ledger_complete"],
])("finds %s, and nothing in another account", async (_, sql, rules) => {
  const [accountId, untouched] = [await accountWithRows(), await accountWithRows()];
  await store.owner.unsafe(sql.replaceAll("$1", `'${accountId}'`));
  expect([await rulesOf(accountId), await rulesOf(untouched)]).toEqual([words(rules), []]);
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
    expect(await rulesOf(accountId), name).toContain("ledger_unchanged");
    await owner`DELETE FROM vx.ledger WHERE ${row}`;
    await owner`INSERT INTO vx.ledger SELECT * FROM vx.kept_row`;
  }
  expect(await rulesOf(accountId)).toEqual([]);
  await owner`DROP TABLE vx.kept_row`;
});

/** The smallest change of a column. */
function otherValue(name: string, type: string): string {
  if (name === "kind") return "'adjustment'";
  if (type === "text") return `${name} || 'x'`;
  if (["bigint", "integer", "smallint"].includes(type)) return `coalesce(${name}, 0) + 1`;
  if (type === "bytea") return `set_byte(${name}, 0, get_byte(${name}, 0) # 1)`;
  return `${name} + interval '1 microsecond'`;
}
