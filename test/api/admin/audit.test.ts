import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startTestApp, type TestApp } from "../../support/app.ts";
import { createTestAccount, createTestKey, type Operator, operatorOf } from "../../support/fixtures.ts";

let app: TestApp;
let operator: Operator;

/** An account with three ledger entries: 10, 20 and -5. */
async function accountWithRows(): Promise<string> {
  const accountId = await createTestAccount(operator);
  for (const [i, amount] of [10n, 20n, -5n].entries()) {
    const move = { accountId, amountMicros: amount, reason: `move ${i}`, idempotencyKey: `${i}` };
    await operator.adjustAccount(move);
  }
  return accountId;
}

describe("audit of consistent data", () => {
  beforeAll(async () => {
    app = await startTestApp();
    operator = operatorOf(app);
    for (let i = 0; i < 5; i++) {
      const accountId = await accountWithRows();
      await createTestKey(operator, { accountId });
    }
    await createTestAccount(operator);
  });
  afterAll(() => app.stop());

  test("reports consistent and counts all rows", async () => {
    expect(await operator.audit({})).toMatchObject({
      consistent: true,
      accounts: 6n,
      entries: 15n,
      keys: 5n,
      balanceMicros: 125n,
      findings: [],
    });
  });
});

describe("audit of data changed by the owner of the database", () => {
  beforeAll(async () => {
    app = await startTestApp();
    operator = operatorOf(app);
  });
  afterAll(() => app.stop());

  async function rulesBroken(accountId: string): Promise<string[]> {
    const { consistent, findings } = await operator.audit({});
    const own = findings.filter((finding) => finding.accountId === accountId);
    if (own.length > 0) expect(consistent).toBe(false);
    for (const { detail } of own) expect(detail).not.toBe("");
    return [...new Set(own.map(({ rule }) => rule))].sort();
  }

  test.each([
    {
      what: "a raised balance",
      sql: "UPDATE vx.accounts SET balance_micros = balance_micros + 1 WHERE id = $1",
      rules: ["balance_equals_ledger"],
    },
    {
      what: "a held amount without a hold",
      sql: "UPDATE vx.accounts SET held_micros = 1 WHERE id = $1",
      rules: ["held_equals_open_holds"],
    },
    {
      what: "a raised amount, in row and balance",
      sql: `WITH one AS (UPDATE vx.ledger SET amount_micros = 11 WHERE account_id = $1 AND seq = 1)
            UPDATE vx.accounts SET balance_micros = balance_micros + 1 WHERE id = $1`,
      rules: ["balance_after_correct", "ledger_unchanged"],
    },
    {
      what: "two changed amounts with the same sum",
      sql: `UPDATE vx.ledger SET amount_micros = 30 - amount_micros,
              balance_after_micros = CASE seq WHEN 1 THEN 20 ELSE 30 END WHERE account_id = $1 AND seq < 3`,
      rules: ["ledger_unchanged"],
    },
    {
      what: "the first row deleted",
      sql: "DELETE FROM vx.ledger WHERE account_id = $1 AND seq = 1",
      rules: ["balance_after_correct", "balance_equals_ledger", "ledger_complete", "ledger_unchanged", "ledger_without_gaps"],
    },
    {
      what: "the last row deleted",
      sql: "DELETE FROM vx.ledger WHERE account_id = $1 AND seq = 3",
      rules: ["balance_equals_ledger", "ledger_complete"],
    },
    {
      what: "the last row and its effect deleted",
      sql: `WITH one AS (DELETE FROM vx.ledger WHERE account_id = $1 AND seq = 3)
            UPDATE vx.accounts SET balance_micros = 30, last_seq = 2 WHERE id = $1`,
      rules: ["ledger_complete"],
    },
    {
      what: "all rows deleted",
      sql: "DELETE FROM vx.ledger WHERE account_id = $1",
      rules: ["balance_equals_ledger", "ledger_complete"],
    },
    {
      what: "a row added",
      sql: `INSERT INTO vx.ledger SELECT lane, account_id, 4, id || 'x', month, kind, 5, 30, reason, request_id, key_id, model,
              price_version, input, cached_input, cache_write, output, reasoning, images, image_tokens, user_id, trace_id,
              created_at, hash_version, hash
            FROM vx.ledger WHERE account_id = $1 AND seq = 3`,
      rules: ["balance_equals_ledger", "ledger_complete", "ledger_unchanged"],
    },
    {
      what: "another number of rows",
      sql: "UPDATE vx.accounts SET last_seq = 4 WHERE id = $1",
      rules: ["ledger_complete"],
    },
  ])("finds $what", async ({ sql, rules }) => {
    const accountId = await accountWithRows();
    await app.database.owner.unsafe(sql.replaceAll("$1", `'${accountId}'`));
    expect(await rulesBroken(accountId)).toEqual(rules);
  });

  test("detects a change of any column of a row", async () => {
    const columns = await app.database.owner<{ name: string; type: string }[]>`
      SELECT column_name AS name, data_type AS type FROM information_schema.columns
      WHERE table_schema = 'vx' AND table_name = 'ledger' AND column_name NOT IN ('lane', 'account_id', 'seq')`;
    expect(columns.length).toBeGreaterThanOrEqual(15);
    const { owner } = app.database;
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

  test("has no findings for other accounts", async () => {
    const touched = await accountWithRows();
    const untouched = await accountWithRows();
    await app.database.owner`UPDATE vx.ledger SET reason = 'gift' WHERE account_id = ${touched}`;
    expect(await rulesBroken(touched)).toEqual(["ledger_unchanged"]);
    expect(await rulesBroken(untouched)).toEqual([]);
  });
});

/** The smallest change of a column. */
function otherValue(name: string, type: string): string {
  if (name === "kind") return "'credit'";
  if (type === "text") return `${name} || 'x'`;
  if (["bigint", "integer", "smallint"].includes(type)) return `coalesce(${name}, 0) + 1`;
  if (type === "bytea") return `set_byte(${name}, 0, get_byte(${name}, 0) # 1)`;
  return `${name} + interval '1 microsecond'`;
}
