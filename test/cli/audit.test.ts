import { expect, test } from "vitest";
import { useOwnApp } from "../support/app.ts";
import { envOf, vx } from "./support.ts";

const app = useOwnApp();

test("audit exits 0 if the ledger is consistent, and 1 if one balance differs by one micro", async () => {
  const env = envOf(app);
  const created = await vx(["accounts", "create", "--name", "acme", "--json"], env);
  const { id } = JSON.parse(created.stdout).account;
  await vx(["keys", "create", id, "--name", "ci"], env);
  await vx(["accounts", "credit", id, "25.00", "--reason", "invoice 1001"], env);

  const good = await vx(["audit", "--json"], env);
  expect(good).toMatchObject({ code: 0, stderr: "" });
  const totals = { accounts: 1, entries: 1, keys: 1, balance_micros: 25_000_000, operator_events: 3 };
  expect(JSON.parse(good.stdout)).toEqual({ consistent: true, ...totals, findings: [] });
  expect((await vx(["audit"], env)).stdout).toMatch(/CONSISTENT\n +1 +1 +1 +\$25\.00 +3 +yes\n$/);

  const onTerminal = await vx(["audit"], env, { isTerminal: true });
  expect(onTerminal).toMatchObject({ code: 0, stdout: expect.stringMatching(/ yes\n$/) });
  const shown = onTerminal.stderr.split("\r\u001b[2K");
  expect(shown.slice(0, 2)).toEqual(["", expect.stringMatching(/^\[ +\] 0 % {2}0 ledger entries audited$/)]);
  expect(shown.slice(-2)).toEqual([expect.stringMatching(/^\[#.* 1 ledger entries audited$/), ""]);

  const log = await vx(["log", "--account", id, "--method", "CreditAccount"], env);
  expect(log).toMatchObject({ code: 0, stderr: "" });
  expect(log.stdout).toMatch(
    new RegExp(
      `^TIME .*\n\\S+ +break-glass +CreditAccount +${id} +ok +entry_id=led_\\S+ amount_micros=25000000 +invoice 1001\n$`,
    ),
  );
  expect(await vx(["log", "--to", "2020-01-01"], env)).toMatchObject({ stderr: "There are no such events.\n" });

  await app.database.owner`UPDATE vx.accounts SET balance_micros = balance_micros + 1 WHERE id = ${id}`;
  const bad = await vx(["audit", "--json"], env);
  expect(bad.code).toBe(1);
  expect(JSON.parse(bad.stdout)).toMatchObject({
    consistent: false,
    findings: [{ account_id: id, rule: "balance_equals_ledger", detail: expect.any(String) }],
  });
  const table = await vx(["audit"], env);
  expect(table).toMatchObject({ code: 1, stderr: expect.stringMatching(/^vx: .*differ/) });
  expect(table.stdout).toMatch(new RegExp(`\\$25\\.000001 +3 +NO\\n\\nACCOUNT +RULE +DETAIL\\n${id} +balance_equals_ledger `));
});
