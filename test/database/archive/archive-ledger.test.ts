import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { zstdCompressSync, zstdDecompressSync } from "node:zlib";
import { afterEach, beforeEach, expect, test } from "vitest";
import { audit, auditInSteps } from "../../../src/audit/store.ts";
import { ArchiveDatabase } from "../../../src/database/archive/archive-database.ts";
import { type LedgerLine, ledgerHash } from "../../../src/database/archive/verify-entries.ts";
import { DatabaseLock } from "../../../src/database/driver/database-lock.ts";
import { migrate } from "../../../src/database/schema/migrate.ts";
import { laneOfId } from "../../../src/domain/lane.ts";
import { readPage } from "../../../src/domain/page.ts";
import { monthText } from "../../../src/domain/periods.ts";
import { getGeneration, LedgerPartitions, listEntries, moveBalance } from "../../../src/ledger/store.ts";
import { TEST_ACTION, TEST_CALLER } from "../../support/action.ts";
import { allPages } from "../../support/all-pages.ts";
import { charge, type Payer } from "../../support/payer.ts";
import { started } from "../../support/started.ts";
import { createTestBilling } from "../../support/store.ts";
import {
  ENTRIES,
  LAST,
  type LedgerOfMonths,
  NOT_ABORTED,
  placeOf,
  prepareLedgers,
  SECOND_LAST,
  THIRD_LAST,
} from "./ledger-of-months.ts";
import { thisMonth } from "./past-months.ts";

let ledger: LedgerOfMonths;
let database: LedgerOfMonths["database"];
let pool: LedgerOfMonths["pool"];
let busy: Payer;
let idle: Payer;
let recent: Payer;

const ledgers = started(() => prepareLedgers());
beforeEach(async () => {
  ledger = await ledgers.create();
  ({ database, pool, busy, idle, recent } = ledger);
});
afterEach(() => ledger.drop());

const archive: LedgerOfMonths["archive"] = (...options) => ledger.archive(...options);
const auditFiles = () => ledger.auditFiles();

async function expectConsistent(entriesInLedger: number, pieces = [3]): Promise<void> {
  for (const pieceRows of pieces) {
    const report = await audit(pool, NOT_ABORTED, pieceRows);
    expect(report, `pieces of ${pieceRows}`).toMatchObject({ findings: [], accounts: 3n });
    expect(Number(report.entries), `pieces of ${pieceRows}`).toBe(entriesInLedger);
  }
}

async function seqsInLedger({ accountId }: Payer): Promise<number[]> {
  const rows = await database.owner<{ seq: string }[]>`SELECT seq FROM vx.ledger WHERE account_id = ${accountId} ORDER BY seq`;
  return rows.map(({ seq }) => Number(seq));
}

function linesOf(file: string): LedgerLine[] {
  const text = zstdDecompressSync(readFileSync(join(ledger.folder, file))).toString();
  return text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as LedgerLine);
}

const fileOf = (month: number) => `ledger-${monthText(month)}.jsonl.zst`;

test("a month is moved to a file with the entries charged in it, and the ledger continues it", async () => {
  await expectConsistent(ENTRIES);
  expect(await archive(SECOND_LAST)).toMatchObject([{ file: fileOf(THIRD_LAST), entries: 7 }]);

  expect(
    linesOf(fileOf(THIRD_LAST))
      .map(({ seq }) => seq)
      .sort(),
  ).toEqual([1, 1, 2, 2, 3, 3, 4]);
  expect(await seqsInLedger(busy)).toEqual([5, 6, 7, 8, 9, 10, 11, 12, 13]);
  expect(await seqsInLedger(idle)).toEqual([]);
  await expectConsistent(ENTRIES - 7);
  expect(await auditFiles()).toEqual({ archives: 1, entries: 7, findings: [] });

  // With the entry that another partition had, and without the one that begins the next month.
  expect(await archive(thisMonth)).toMatchObject([{ entries: 4 }, { entries: 2 }]);
  expect(linesOf(fileOf(SECOND_LAST)).map(({ seq }) => seq)).toEqual([5, 6, 7, 8]);
  expect(await seqsInLedger(busy)).toEqual([11, 12, 13]);
  await expectConsistent(5, [1, 3, 1_000]);
  expect(await auditFiles()).toEqual({ archives: 3, entries: 13, findings: [] });
  expect(await archive(thisMonth + 1)).toEqual([]);
  for (const month of [THIRD_LAST, SECOND_LAST, LAST]) {
    const lines = linesOf(fileOf(month)).filter((line) => line.account_id === busy.accountId);
    for (const [i, line] of lines.slice(1).entries()) expect(ledgerHash(lines[i]?.hash ?? "", line)).toBe(line.hash);
  }
});

test("accounts with archived entries are charged and credited as before", async () => {
  await archive(thisMonth);
  const billing = createTestBilling(pool);
  for (const payer of [busy, idle, recent]) await charge(billing, payer, 3n);
  expect(await seqsInLedger(idle)).toEqual([4]);
  await expectConsistent(8);
});

test("pages end where the archives begin", async () => {
  await archive(LAST);
  const seqsOf = async ({ accountId }: Payer) => {
    const list = (pageToken: string) => listEntries(pool, accountId, readPage("entries", { pageSize: 4, pageToken }));
    return (await allPages(list)).map((rows) => rows.map(({ seq }) => Number(seq)));
  };
  expect(await seqsOf(busy)).toEqual([[13, 12, 11, 10], [9]]);
  expect(await seqsOf(idle)).toEqual([[]]);
});

test("an interruption at any step loses no entry, and the next call continues", async () => {
  for (const step of ["select", "write", "verify", "remove"]) {
    const interrupted = archive(thisMonth, (progress) => {
      if (progress.step === step && progress.file === fileOf(SECOND_LAST)) throw new Error("interrupted");
    });
    await expect(interrupted).rejects.toThrow("interrupted");
    await expectConsistent(ENTRIES - 7);
    expect(await auditFiles()).toMatchObject({ archives: 1, findings: [] });
    expect(readdirSync(ledger.folder).filter((name) => name.includes(".new-"))).toEqual([]);
  }
  expect(await archive(thisMonth)).toMatchObject([{ entries: 4 }, { entries: 2 }]);
  await expectConsistent(5);
  expect(await auditFiles()).toEqual({ archives: 3, entries: 13, findings: [] });
});

test("an entry that is charged in an archived month while its file is written stays in the ledger", async () => {
  let done: Promise<void> | undefined;
  await archive(SECOND_LAST, ({ step }) => {
    if (step === "remove") done = credit(busy, THIRD_LAST, "late");
  });
  await done;
  expect(await seqsInLedger(busy)).toEqual([5, 6, 7, 8, 9, 10, 11, 12, 13, 14]);
  await expectConsistent(ENTRIES - 7 + 1);
});

test("an audit during which entries are archived finds nothing", async () => {
  for (let archiveAt = 1; archiveAt <= 12; archiveAt += 4) {
    const steps = auditInSteps(pool, NOT_ABORTED, 2);
    let count = 0;
    for (;;) {
      const step = await steps.next();
      if (step.done) {
        expect(step.value.report.findings).toEqual([]);
        break;
      }
      if (++count === archiveAt) await archive(THIRD_LAST + 1 + (archiveAt - 1) / 4);
    }
  }
});

test("the audit finds changes of archived entries, of their usage, and of what the database has of them", async () => {
  await archive(thisMonth);
  const file = join(ledger.folder, fileOf(THIRD_LAST));
  const original = readFileSync(file);
  const originalLines = linesOf(fileOf(THIRD_LAST));
  const changeLines = (change: (lines: LedgerLine[]) => LedgerLine[]) => {
    const lines = change(originalLines).map((line) => `${JSON.stringify(line)}\n`);
    writeFileSync(file, zstdCompressSync(lines.join("")));
  };
  const detail = async () => (await auditFiles()).findings.map((finding) => finding.detail).join();
  changeLines((lines) => lines.map((line) => ({ ...line, reason: line.seq === 2 ? "gift" : line.reason })));
  expect(await detail()).toMatch(/the hash of entry 2 of .* does not match/);
  changeLines((lines) => lines.slice(0, -1));
  expect(await detail()).toMatch(/the entries of .* are missing/);
  changeLines((lines) => lines.filter(({ seq }) => seq !== 2));
  expect(await detail()).toMatch(/entry 2 of .* is expected/);
  changeLines((lines) => [...lines, ...lines.slice(-1)]);
  expect(await detail()).toMatch(/more entries than were archived/);
  changeLines((lines) => lines);
  expect(await detail()).toMatch(/SHA-256 hash differs/);
  writeFileSync(file, original.subarray(0, original.length / 2));
  expect(await detail()).not.toBe("");
  writeFileSync(file, original);
  expect(await detail()).toBe("");

  const { owner } = database;
  const rules = async () => (await audit(pool, NOT_ABORTED)).findings.map(({ account_id, rule }) => [account_id, rule]);
  await owner`UPDATE vx.usage_quarters SET input = input + 1 WHERE account_id = ${idle.accountId}`;
  expect(await rules()).toEqual([[idle.accountId, "usage_equals_ledger"]]);
  await owner`UPDATE vx.usage_quarters SET input = input - 1 WHERE account_id = ${idle.accountId}`;
  await owner`UPDATE vx.archived_ledger SET balance_micros = balance_micros + 1 WHERE account_id = ${idle.accountId}`;
  expect(await rules()).toEqual([[idle.accountId, "balance_equals_ledger"]]);
  expect(await detail()).toMatch(/the last entry of .* is not that of the database/);
});

test("a file that another program wrote is not used", async () => {
  writeFileSync(join(ledger.folder, fileOf(THIRD_LAST)), zstdCompressSync("{}\n"));
  await expect(archive(SECOND_LAST)).rejects.toThrow(/entry 1 of .* is expected/);
  await expectConsistent(ENTRIES);
});

test("an archived credit is not credited again", async () => {
  const [key] = await database.owner<{ idempotency_key: string }[]>`
    SELECT idempotency_key FROM vx.movement_keys WHERE account_id = ${idle.accountId}`;
  const idempotencyKey = key?.idempotency_key ?? "";
  const movement = {
    entryId: idempotencyKey,
    accountId: idle.accountId,
    kind: "credit",
    amountMicros: 1_000n,
    reason: "test",
  } as const;
  const repeat = () => moveBalance(pool, TEST_ACTION, { ...movement, idempotencyKey });
  expect(await repeat()).toMatchObject({ seq: 1n, amount_micros: 1_000n });
  await archive(SECOND_LAST);
  await expect(repeat()).rejects.toThrow(/was used for ledger row 1, which is archived/);
  await expectConsistent(ENTRIES - 7);
});

test("an unknown generation of an archived month is reported as perhaps archived", async () => {
  const old = "gen_01aaaaaaaafzvadvq9j4ssg6h0".slice(0, 30);
  const plain = /^There is no charged generation "gen_\w+"\.$/;
  await expect(getGeneration(pool, busy.accountId, old)).rejects.toThrow(plain);
  await archive(SECOND_LAST);
  await expect(getGeneration(pool, busy.accountId, old)).rejects.toThrow(/entries before \S+ are archived/);
  await expect(getGeneration(pool, busy.accountId, "gen_01zzzzzzzzfzvadvq9j4ssg6h0")).rejects.toThrow(plain);
});

async function credit({ accountId: id }: Payer, month: number, key: string): Promise<void> {
  const entry = [`led_${key}`, month, "credit", 1, key, key] as const;
  await pool.call("move_balance", TEST_CALLER, laneOfId(id), id, ...entry);
}

const partitionOf = (month: number) => `ledger_${monthText(month).replace("-", "_")}`;

test("the server's role creates the partitions of the next months, once", async () => {
  const next = partitionOf(thisMonth + 3);
  await database.owner.unsafe(`DROP TABLE vx.${next}`);
  expect(await pool.call("create_ledger_partitions")).toEqual([{ created: next }]);
  expect(await pool.call("create_ledger_partitions")).toEqual([]);
});

test("entries of months without a partition are written and reported, and the owner's migration moves them", async () => {
  const [next, far] = [thisMonth + 3, thisMonth + 14];
  await database.owner.unsafe(`DROP TABLE vx.${partitionOf(next)}`);
  await credit(recent, next, "next");
  for (const key of ["far_1", "far_2"]) await credit(recent, far, key);
  expect(await pool.call("create_ledger_partitions")).toEqual([]);
  expect(await seqsInLedger(recent)).toEqual([1, 2, 3, 4, 5]);
  await expectConsistent(ENTRIES + 3);
  const reports: unknown[] = [];
  const report = () => new LedgerPartitions(pool, (months) => reports.push(months)).maintain();
  await report();
  // As autovacuum, or an index that is being created, of another partition.
  await database.owner.begin(async (transaction) => {
    await transaction.unsafe(`LOCK TABLE vx.${partitionOf(LAST)} IN SHARE UPDATE EXCLUSIVE MODE`);
    await migrate({ kind: "url", url: database.url });
  });
  await report();
  expect(reports).toEqual([
    [
      { month: monthText(next), entries: 1 },
      { month: monthText(far), entries: 2 },
    ],
    [],
  ]);
  for (const [month, entries] of [
    [next, 1],
    [far, 2],
  ] as const) {
    const rows = await database.owner.unsafe(`SELECT FROM vx.${partitionOf(month)} WHERE month = ${month}`);
    expect(rows).toHaveLength(entries);
  }
  await credit(recent, far, "far_3");
  expect(await database.owner`SELECT FROM vx.ledger_other_months`).toHaveLength(0);
  await expectConsistent(ENTRIES + 4);
  // The server's role cannot change the ledger, by this function either.
  await expect(pool.call("move_other_month")).rejects.toMatchObject({ cause: { code: "42501" } });
});

test("an archive has the entries of its month that had no partition", async () => {
  const { owner } = database;
  await owner.unsafe(`
    CREATE TABLE vx.aside AS SELECT * FROM vx.${partitionOf(SECOND_LAST)};
    DROP TABLE vx.${partitionOf(SECOND_LAST)};
    INSERT INTO vx.ledger SELECT * FROM vx.aside;
    DROP TABLE vx.aside`);
  expect(await owner`SELECT FROM vx.ledger_other_months WHERE month = ${SECOND_LAST}`).not.toHaveLength(0);
  const archives = await archive(SECOND_LAST + 1);
  expect(archives.map(({ month }) => month)).toContain(SECOND_LAST);
  expect((await auditFiles()).findings).toEqual([]);
});

test("a database can be archived while a server uses its data folder, by one command at a time", async () => {
  const place = placeOf(database);
  const lock = new DatabaseLock(place.address, "server");
  await lock.acquire();
  const other = await ArchiveDatabase.open(place);
  await other.lock();
  await expect(archive(SECOND_LAST)).rejects.toThrow("another 'vx archive'");
  await other.close();
  expect(await archive(SECOND_LAST)).toHaveLength(1);
  await lock.close();
});
