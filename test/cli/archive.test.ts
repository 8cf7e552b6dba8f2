import { readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { monthText } from "../../src/domain/periods.ts";
import {
  type LedgerOfMonths,
  type LedgersOfMonths,
  prepareLedgers,
  SECOND_LAST,
  THIRD_LAST,
} from "../database/archive/ledger-of-months.ts";
import { thisMonth } from "../database/archive/past-months.ts";
import { vx } from "./support.ts";

let ledgers: LedgersOfMonths;
let ledger: LedgerOfMonths;
let env: Record<string, string>;

beforeAll(async () => {
  ledgers = await prepareLedgers();
  ledger = await ledgers.create();
  env = { DATABASE_URL: ledger.database.url };
});
afterAll(async () => {
  await ledger.drop();
  await ledgers.drop();
});

test.each([
  [["--before", "2030-01", "--keep", "2"], "give either --before or --keep"],
  [["--before", "2030-13"], "--before must be a month such as 2030-01"],
  [["--keep", "0"], "--keep must be a number of months from 1 to 1200"],
  [["--keep", "1.5"], "--keep must be a number of months from 1 to 1200"],
])("archive refuses %j and changes nothing", async (options, message) => {
  const refused = await vx(["archive", ...options, ledger.folder], env);
  expect(refused).toMatchObject({ code: 2, stdout: "" });
  expect(refused.stderr).toContain(message);
  expect(readdirSync(ledger.folder)).toEqual([]);
});

test("archive names a folder that does not exist", async () => {
  const missing = join(ledger.folder, "missing");
  const failed = await vx(["archive", "--keep", "1", missing], env);
  expect(failed).toMatchObject({ code: 1, stdout: "" });
  expect(failed.stderr).toMatch(/^vx: .*missing.* cannot be written: no such file or directory/m);
});

test("archive prints the files that it wrote, and the audit reads them", async () => {
  expect(await vx(["archive", ledger.folder], env)).toEqual({
    code: 0,
    stdout: `No partition of the ledger ended before ${monthText(thisMonth - 12)}; nothing was archived.\n`,
    stderr: "",
  });
  const table = await vx(["archive", "--before", monthText(SECOND_LAST), ledger.folder], env);
  expect(table).toMatchObject({ code: 0, stderr: "" });
  const month = monthText(THIRD_LAST);
  expect(table.stdout).toMatch(
    new RegExp(`^FILE +LAST MONTH +ENTRIES +SHA-256\nledger-${month}.jsonl.zst +${month} +7 +[0-9a-f]{64}\n$`),
  );
  const json = await vx(["archive", "--keep", "2", "--json", ledger.folder], env);
  expect(JSON.parse(json.stdout)).toEqual({
    archives: [
      {
        file: `ledger-${monthText(SECOND_LAST)}.jsonl.zst`,
        last_month: monthText(SECOND_LAST),
        entries: 4,
        sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
      },
    ],
  });

  const good = await vx(["audit", "--archive", ledger.folder, "--json"], env);
  expect(good).toMatchObject({ code: 0, stderr: "" });
  expect(JSON.parse(good.stdout)).toMatchObject({
    archives: { files: 2, entries: 11 },
    audit: { consistent: true, accounts: 3, entries: 7, findings: [] },
  });
  const text = await vx(["audit", "--archive", ledger.folder], env);
  expect(text.stdout).toMatch(/ yes\n\n11 archived entries in 2 files\n$/);

  rmSync(join(ledger.folder, `ledger-${month}.jsonl.zst`));
  const bad = await vx(["audit", "--archive", ledger.folder], env);
  expect(bad.code).toBe(1);
  expect(bad.stdout).toMatch(new RegExp(`archive_matches_ledger +.*ledger-${month}.jsonl.zst cannot be read`));
});
