import { auditArchives } from "../../../src/audit/audit-archives.ts";
import type { LedgerPlace } from "../../../src/database/archive/archive-database.ts";
import { type ArchiveProgress, archiveLedger } from "../../../src/database/archive/archive-ledger.ts";
import type { Database } from "../../../src/database/driver/database.ts";
import { createTestDatabase, type TestDatabase } from "../../support/database.ts";
import { charge, createPayer, type Payer } from "../../support/payer.ts";
import { createTestBilling, openDatabase } from "../../support/store.ts";
import { createTemporaryFolder } from "../../support/temporary-folder.ts";
import { createPastPartitions, moveToPast, thisMonth } from "./past-months.ts";

export const NOT_ABORTED = new AbortController().signal;
export const [THIRD_LAST, SECOND_LAST, LAST] = [thisMonth - 3, thisMonth - 2, thisMonth - 1];
/** The credit of each payer is its first entry. */
export const ENTRIES = 13 + 3 + 2;

type Payers = Readonly<Record<"busy" | "idle" | "recent", Payer>>;

export type LedgersOfMonths = Awaited<ReturnType<typeof prepareLedgers>>;
export type LedgerOfMonths = Awaited<ReturnType<LedgersOfMonths["create"]>>;

export const placeOf = ({ url }: Pick<TestDatabase, "url">): LedgerPlace => ({
  address: { kind: "url", url },
  schema: "vx",
  cell: undefined,
});

/** Prepares a database with entries in each of the last months, of which every test gets a copy. */
export async function prepareLedgers() {
  const original = await createTestDatabase();
  const pool = openDatabase(original.address);
  const payers = await createEntries(original, pool);
  await pool.close();
  // PostgreSQL copies a database only while there are no connections to it.
  await original.owner.end();
  const template = new URL(original.url).pathname.slice(1);
  return { create: async () => await createLedger(template, payers), drop: () => original.drop() };
}

async function createEntries(database: TestDatabase, pool: Database): Promise<Payers> {
  const [busy, idle, recent] = await Promise.all([
    createPayer(pool, 1_000n),
    createPayer(pool, 1_000n),
    createPayer(pool, 1_000n),
  ]);
  const billing = createTestBilling(pool);
  for (let i = 1; i <= 12; i++) await charge(billing, busy, BigInt(i), i % 2 ? "ada" : 'a "user" \\ é');
  for (let i = 1; i <= 2; i++) await charge(billing, idle, 5n);
  await charge(billing, recent, 7n);
  await createPastPartitions(database.owner, 3);
  const past = ({ accountId }: Payer, seq: number, createdIn: number, begunIn = createdIn) => ({
    accountId,
    seq,
    createdIn,
    begunIn,
  });
  await moveToPast(database.owner, [
    ...[1, 2, 3, 4].map((seq) => past(busy, seq, THIRD_LAST)),
    // Charged after the end of the month in which it began.
    past(busy, 5, SECOND_LAST, THIRD_LAST),
    ...[6, 7].map((seq) => past(busy, seq, SECOND_LAST)),
    // The clock of its server was ahead.
    past(busy, 8, SECOND_LAST, LAST),
    ...[9, 10].map((seq) => past(busy, seq, LAST)),
    ...[1, 2, 3].map((seq) => past(idle, seq, THIRD_LAST)),
  ]);
  return { busy, idle, recent };
}

/** A copy of the database, and a folder for its archives. */
async function createLedger(template: string, payers: Payers) {
  const database = await createTestDatabase({ template });
  const pool = openDatabase(database.address);
  const place = placeOf(database);
  const folder = createTemporaryFolder("archive");
  return {
    ...payers,
    database,
    pool,
    folder: folder.path,
    archive: (before: number, onProgress: (progress: ArchiveProgress) => void = () => undefined) =>
      archiveLedger({ place, folder: folder.path, before, signal: NOT_ABORTED, onProgress }),
    auditFiles: () => auditArchives(place, folder.path, NOT_ABORTED, () => undefined),
    drop: async () => {
      await pool.close();
      await database.drop();
      folder.remove();
    },
  };
}
