import { appendFileSync } from "node:fs";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ExportUsageRequestSchema } from "../../gen/vx/admin/v1/admin_pb.js";
import { exportUsage } from "../../src/api/usage/export.ts";
import { laneOfId } from "../../src/domain/lane.ts";
import { readPage } from "../../src/domain/page.ts";
import { monthText } from "../../src/domain/periods.ts";
import { listFilteredEntries } from "../../src/store/ledger.ts";
import { untilWaiting } from "../support/database.ts";
import { started } from "../support/started.ts";
import { type LedgerOfMonths, prepareLedgers, SECOND_LAST, THIRD_LAST } from "./ledger-of-months.ts";
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
