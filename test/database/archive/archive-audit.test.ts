import { appendFileSync } from "node:fs";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ExportUsageRequestSchema } from "../../../gen/vx/admin/v1/admin_pb.js";
import { audit } from "../../../src/audit/store.ts";
import { laneOfId } from "../../../src/domain/lane.ts";
import { readPage } from "../../../src/domain/page.ts";
import { monthText } from "../../../src/domain/periods.ts";
import { listFilteredEntries } from "../../../src/ledger/store.ts";
import type { LimitOwner } from "../../../src/limits/store.ts";
import { exportUsage } from "../../../src/usage/export.ts";
import { readUsage } from "../../../src/usage/sums.ts";
import { untilWaiting } from "../../support/database.ts";
import { setTestLimit } from "../../support/limits.ts";
import { charge } from "../../support/payer.ts";
import { started } from "../../support/started.ts";
import { createTestBilling } from "../../support/store.ts";
import { replaceInFunction } from "../../torture/planted/plant.ts";
import { type LedgerOfMonths, NOT_ABORTED, prepareLedgers, SECOND_LAST, THIRD_LAST } from "./ledger-of-months.ts";
import { thisMonth } from "./past-months.ts";

let ledger: LedgerOfMonths;

const ledgers = started(() => prepareLedgers());
beforeEach(async () => {
  ledger = await ledgers.create();
});
afterEach(() => ledger.drop());

test.each(["audit", "audit_usage"])("%s finds nothing if it waits for the removal of a month", async (name) => {
  const { archive, database, pool, busy } = ledger;
  const interrupted = archive(SECOND_LAST, ({ step }) => {
    if (step === "remove") throw new Error("interrupted");
  });
  await expect(interrupted).rejects.toThrow("interrupted");
  const start = name === "audit" ? [0, 0, "0", Buffer.alloc(0)] : [0, "0", "0", 0];
  const { waiting } = await database.owner.begin(async (transaction) => {
    await transaction`SELECT vx.remove_archived_partition(${THIRD_LAST}::integer)`;
    const waiting = pool.call<{ rule: string }>(name, laneOfId(busy.accountId), "", ...start, 1_000, 10);
    await untilWaiting(database);
    return { waiting };
  });
  expect((await waiting).filter(({ rule }) => rule !== "")).toEqual([]);
});

test("filtered lists end where the archives begin", async () => {
  const { archive, pool, busy } = ledger;
  await archive(thisMonth);
  const filter = { kind: "generation", keyId: "", model: "", from: undefined, to: undefined };
  const pieces = { rows: 1n, max: 3 };
  const list = async (pageToken: string) =>
    await listFilteredEntries(pool, busy.accountId, filter, readPage("entries", { pageSize: 10, pageToken }), pieces);
  const page = await list("");
  expect(page.rows.map(({ seq }) => Number(seq))).toEqual([13, 12, 11]);
  expect(page.nextPageToken).toBe("");
});

test("the audit finds bytes after the end of a file", async () => {
  const { archive, auditFiles, folder } = ledger;
  await archive(SECOND_LAST);
  appendFileSync(join(folder, `ledger-${monthText(THIRD_LAST)}.jsonl.zst`), Buffer.alloc(1_000_000, "x"));
  expect((await auditFiles()).findings).toHaveLength(1);
});

test("an export of credits during which some are archived fails", async () => {
  const { archive, pool } = ledger;
  const from = timestampFromDate(new Date(Date.UTC(1970, THIRD_LAST)));
  const request = create(ExportUsageRequestSchema, { format: "focus", from });
  const pieces = exportUsage({ database: pool, productName: "vx" }, request, {
    signal: new AbortController().signal,
    recheck: async () => undefined,
    nameAccount: () => undefined,
  });
  expect((await pieces.next()).value).toMatchObject({ text: expect.stringMatching(/^BilledCost/) });
  await archive(SECOND_LAST);
  const rest = async () => {
    for await (const _ of pieces);
  };
  await expect(rest()).rejects.toThrow(/credits and adjustments before \S+ are archived/);
});

const rulesOf = async () => (await audit(ledger.pool, NOT_ABORTED)).findings.map(({ rule }) => rule);
const problems = async () => (await audit(ledger.pool, NOT_ABORTED)).findings.map(({ detail }) => detail);

const plant = (name: string, find: string, put: string) => replaceInFunction(ledger.database.owner, name, { find, put });

test.each([
  ["late entries are dropped with the partition", "INSERT INTO ledger SELECT * FROM pg_temp.later_entries;", ""],
  ["the archive is not recorded", "SET removed_at = clock_timestamp()", "SET removed_at = NULL"],
])("the audit finds it if %s", async (_, find, put) => {
  await plant("remove_archived_partition", find, put);
  await ledger.archive(SECOND_LAST);
  expect(await rulesOf()).toContain("ledger_complete");
});

test("an archive that lacks an entry is not removed from the ledger", async () => {
  await plant("entries_to_archive", "l.seq <= h.seq", "l.seq < h.seq");
  await expect(ledger.archive(SECOND_LAST)).rejects.toThrow(/is expected|are missing/);
  expect(await rulesOf()).toEqual([]);
});

test("the audit compares counters whose entries are archived with the usage, if it has their sums", async () => {
  const { pool, busy, database } = ledger;
  const account: LimitOwner = { kind: "account", id: busy.accountId };
  const total = { metric: "cost", amount: 1_000n, window: "total" } as const;
  const minute = await setTestLimit(pool, account, { metric: "cost", amount: 1_000n, window: "minute" });
  const ofUsers = await setTestLimit(pool, account, { ...total, perUser: true });
  const ofPlan = await setTestLimit(pool, { kind: "plan", id: "scale" }, total);
  await charge(createTestBilling(pool), busy, 13n, "ada");
  // The charges of the third last month are those of one minute: 1, 2 and 3. The plan has counted from then on.
  const start = new Date(Date.UTC(1970, THIRD_LAST, 2));
  await changeCounter(minute, { spent: 6, windowEnd: new Date(start.getTime() + 60_000), countedSince: start });
  await changeCounter(ofPlan, { spent: 91, countedSince: start });
  expect(await problems()).toEqual([]);
  await ledger.archive(thisMonth);
  expect(await problems()).toEqual([]);

  // 1 + 3 + … + 11 + 13
  await changeCounter(ofUsers, { spent: 48 }, "ada");
  expect(await problems()).toEqual([expect.stringContaining("spent 48, ledger adds up to 49")]);
  await changeCounter(ofUsers, { spent: 49 }, "ada");
  await database.owner`UPDATE vx.usage_quarters SET user_id = '(other)'
    WHERE user_id IN (SELECT user_id FROM vx.end_users WHERE name LIKE 'a "user"%')`;
  await changeCounter(ofUsers, { spent: 48 }, "ada");
  expect((await problems()).filter((text) => text.startsWith("limit "))).toEqual([]);
});

test("the usage has the sums of end users of archived months", async () => {
  const usage = async () => {
    const by = { account: false, key: false, model: false, user: true, upstream: false };
    const query = { starts: [0], end: Math.ceil(Date.now() / 900_000), by };
    const page = readPage("usage", { pageSize: 0, pageToken: "" }, []);
    const { rows } = await readUsage(ledger.pool, ledger.busy.accountId, query, page);
    return Object.fromEntries(rows.map(({ user_name, cost_micros }) => [user_name, cost_micros]));
  };
  const expected = { ada: 36n, 'a "user" \\ é': 42n };
  expect(await usage()).toEqual(expected);
  await ledger.archive(thisMonth);
  expect(await usage()).toEqual(expected);
});

async function changeCounter(
  limitId: string,
  to: { readonly spent: number; readonly windowEnd?: Date; readonly countedSince?: Date },
  user = "",
): Promise<void> {
  const { owner } = ledger.database;
  const place = owner`array_position((counter).limit_ids, ${limitId})`;
  const changed = await owner`
    UPDATE vx.limit_counters SET counter.spent[${place}] = ${to.spent},
      counter.window_ends[${place}] = coalesce(${to.windowEnd ?? null}, (counter).window_ends[${place}]),
      counter.counted_since[${place}] = coalesce(${to.countedSince ?? null}, (counter).counted_since[${place}])
    WHERE ${limitId} = ANY ((counter).limit_ids) AND user_id
      IN (SELECT vx.user_digest(user_salt, ${user}) FROM vx.accounts)`;
  expect(changed.count).toBe(1);
}
