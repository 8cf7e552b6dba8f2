import { once } from "node:events";
import { readdirSync } from "node:fs";
import { afterEach, beforeEach, expect, test } from "vitest";
import { audit } from "../../src/audit/store.ts";
import { startVx } from "../cli/support.ts";
import { ENTRIES, type LedgerOfMonths, NOT_ABORTED, prepareLedgers } from "../database/archive/ledger-of-months.ts";
import { thisMonth } from "../database/archive/past-months.ts";
import { started } from "../support/started.ts";
import { replaceInFunction } from "../torture/planted/plant.ts";

/** The lock for which the command waits at the step of the test. */
const LOCK = 4_711;
/** In the archived months. */
const ARCHIVED = 13;

let ledger: LedgerOfMonths;

const ledgers = started(() => prepareLedgers());
beforeEach(async () => {
  ledger = await ledgers.create();
});
afterEach(() => ledger.drop());

/** Until the number of connections that wait for the lock, or of all of the command, is this. */
async function connections(count: number, condition: string): Promise<void> {
  for (;;) {
    const rows = await ledger.database.owner.unsafe(
      `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND ${condition}`,
    );
    if (rows.length === count) return;
  }
}

// Before the entries are chosen, while the file is written and while it is read, with both files and without a record of them,
// before the partition is removed, and with the removal done but not committed.
test.each([
  ["add_archived_heads", "entries := 0;", "PERFORM"],
  ["entries_to_archive", "SELECT e.account_id, e.seq,", "SELECT"],
  ["heads_of_archive", "SELECT h.lane, h.account_id,", "SELECT"],
  ["add_archive", "INSERT INTO", "SELECT"],
  ["remove_archived_partition", "SELECT a.* INTO STRICT", "PERFORM"],
  ["remove_archived_partition", "UPDATE ledger_archives", "PERFORM"],
])("vx archive that is killed in %s before %s loses no entry", async (name, text, call) => {
  const { database, folder, pool, archive, auditFiles } = ledger;
  const { owner } = database;
  const locked = `${call} pg_advisory_xact_lock(${LOCK}); ${text}`;
  await replaceInFunction(owner, name, { find: text, put: locked });
  const holder = await owner.reserve();
  await holder`SELECT pg_advisory_lock(${LOCK})`;
  const child = startVx(["archive", "--keep", "1", folder], { DATABASE_URL: database.url });
  const exit = once(child, "exit");
  await connections(1, "wait_event = 'advisory'");
  child.kill("SIGKILL");
  expect(await exit).toEqual([null, "SIGKILL"]);
  await holder`SELECT pg_advisory_unlock(${LOCK})`;
  holder.release();
  // PostgreSQL ends the statement of a killed client, and commits it.
  await connections(0, "application_name = 'vx archive'");
  expect((await audit(pool, NOT_ABORTED)).findings).toEqual([]);

  await replaceInFunction(owner, name, { find: locked, put: text });
  await archive(thisMonth);
  expect(await auditFiles()).toEqual({ archives: 3, entries: ARCHIVED, findings: [] });
  const report = await audit(pool, NOT_ABORTED);
  expect(report).toMatchObject({ findings: [], accounts: 3n, entries: BigInt(ENTRIES - ARCHIVED) });
  expect(readdirSync(folder).filter((file) => file.includes(".new-"))).toEqual([]);
});
