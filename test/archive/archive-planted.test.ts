import { afterEach, beforeEach, expect, test } from "vitest";
import { audit } from "../../src/store/audit.ts";
import { started } from "../support/started.ts";
import { replaceInFunction } from "../torture/planted/plant.ts";
import { type LedgerOfMonths, NOT_ABORTED, prepareLedgers, SECOND_LAST } from "./ledger-of-months.ts";

let ledger: LedgerOfMonths;

const ledgers = started(() => prepareLedgers());
beforeEach(async () => {
  ledger = await ledgers.create();
});
afterEach(() => ledger.drop());

const plant = (name: string, find: string, put: string) => replaceInFunction(ledger.database.owner, name, { find, put });

test.each([
  ["late entries are dropped with the partition", "INSERT INTO ledger SELECT * FROM pg_temp.later_entries;", ""],
  ["the archive is not recorded", "SET removed_at = v_now", "SET removed_at = NULL"],
])("the audit finds it if %s", async (_, find, put) => {
  await plant("remove_archived_partition", find, put);
  await ledger.archive(SECOND_LAST);
  const { findings } = await audit(ledger.pool, NOT_ABORTED);
  expect(findings.map(({ rule }) => rule)).toContain("ledger_complete");
});

test("an archive that lacks an entry is not removed from the ledger", async () => {
  await plant("entries_to_archive", "l.seq <= h.seq", "l.seq < h.seq");
  await expect(ledger.archive(SECOND_LAST)).rejects.toThrow(/is expected|are missing/);
  expect((await audit(ledger.pool, NOT_ABORTED)).findings).toEqual([]);
});
