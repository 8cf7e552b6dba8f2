import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { type AuditReport, audit } from "../../src/audit/store.ts";
import type { Parameter } from "../../src/database/driver/connection.ts";
import type { Database } from "../../src/database/driver/database.ts";
import { withLane } from "../../src/domain/lane.ts";
import { readPage } from "../../src/domain/page.ts";
import { listFilteredEntries } from "../../src/ledger/store.ts";
import { TEST_CALLER } from "../support/action.ts";
import { allPages } from "../support/all-pages.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { openDatabase, withCall } from "../support/store.ts";
import { words } from "../support/words.ts";

const LANE = 7;
/** All in one lane, so that pieces of an audit end within and between accounts. */
const ACCOUNTS = Array.from({ length: 12 }, (_, i) => withLane(`acct_${String(i).padStart(5, "0")}00`, LANE));
/** The number of rows of each account: none, one, and about the size of a piece. */
const ROWS = [0, 1, 3, 0, 0, 7, 2, 6, 0, 1, 12, 0];
const PIECES = [2, 3, 7];

let filled: TestDatabase;
let database: TestDatabase;
let pool: Database;

beforeAll(async () => {
  filled = await createTestDatabase();
  const { owner } = filled;
  for (const [i, id] of ACCOUNTS.entries()) {
    await owner`SELECT FROM vx.create_account(${TEST_CALLER}, ${LANE}::smallint, ${id}, 'test', 'free')`;
    await credits(owner, id, ROWS[i] ?? 0);
  }
  // PostgreSQL copies a database only while there are no connections to it.
  await owner.end();
});
afterAll(() => filled.drop());
beforeEach(async () => {
  database = await createTestDatabase({ template: new URL(filled.url).pathname.slice(1) });
  pool = openDatabase(database.address, { connections: 3 });
});
afterEach(async () => {
  await pool.close();
  await database.drop();
});

function move(id: string, micros: number, key: string): Promise<unknown> {
  const entry = [`led_${id}_${key}`, 0, "credit", micros, "test", key] as const;
  return pool.call("move_balance", TEST_CALLER, LANE, id, ...entry);
}

/** Credits the account so many times, with other amounts. */
async function credits(owner: TestDatabase["owner"], id: string, rows: number): Promise<void> {
  await owner`
    SELECT vx.move_balance(${TEST_CALLER}, ${LANE}::smallint, ${id}, concat('led_', ${id}::text, '_', i), 0, 'credit', 10 + i,
      'test', i::text) FROM generate_series(0, ${rows - 1}::integer) i`;
}

function auditIn(pieceRows: number): Promise<AuditReport> {
  return audit(pool, new AbortController().signal, pieceRows);
}

function inOrder({ findings, startedAt: _, ...totals }: AuditReport) {
  const texts = findings.map((finding) => `${finding.account_id} ${finding.rule} ${finding.detail}`);
  return { ...totals, findings: texts.sort() };
}

test("the audit counts each row and each account once, for any size of its pieces", async () => {
  const entries = ROWS.reduce((sum, rows) => sum + rows, 0);
  for (const piece of [1, ...PIECES]) {
    expect(await auditIn(piece), `pieces of ${piece}`).toMatchObject({ accounts: 12n, entries: BigInt(entries), findings: [] });
  }
});

test("the audit finds the same differences for any size of its pieces", async () => {
  const [fifth, tenth] = [ACCOUNTS[5], ACCOUNTS[10]] as [string, string];
  for (const [id, seq] of [
    [fifth, 7],
    [tenth, 6],
    [tenth, 12],
  ] as const) {
    const undo = await database.owner`
      SELECT balance_after_micros AS micros FROM vx.ledger WHERE account_id = ${id} AND seq = ${seq}`;
    await setBalanceAfter(id, seq, 1);
    const whole = inOrder(await auditIn(1_000));
    expect(whole.findings).toHaveLength(2);
    for (const piece of PIECES) expect(inOrder(await auditIn(piece)), `${id} ${seq} ${piece}`).toEqual(whole);
    await setBalanceAfter(id, seq, undo[0]?.micros);
  }
  await database.owner`DELETE FROM vx.ledger WHERE account_id = ${tenth} AND seq = 4`;
  await database.owner`UPDATE vx.accounts SET held_micros = 1 WHERE id = ${fifth}`;
  await database.owner`UPDATE vx.accounts SET last_seq = 5 WHERE id = ${ACCOUNTS[8] as string}`;
  const whole = inOrder(await auditIn(1_000));
  for (const piece of PIECES) expect(inOrder(await auditIn(piece)), `pieces of ${piece}`).toEqual(whole);
  const rules = words(`
    balance_after_correct balance_equals_ledger held_equals_open_holds ledger_complete ledger_unchanged ledger_without_gaps
  `);
  expect([...new Set(whole.findings.map((text) => text.split(" ")[1]))].sort()).toEqual(rules);
});

async function setBalanceAfter(id: string, seq: number, micros: unknown): Promise<void> {
  await database.owner`UPDATE vx.ledger SET balance_after_micros = ${micros as number} WHERE account_id = ${id} AND seq = ${seq}`;
}

test("the audit reports rows of a deleted account", async () => {
  const { owner } = database;
  const deleted = ACCOUNTS[10] as string;
  await owner.begin(async (transaction) => {
    await transaction`SET LOCAL session_replication_role = replica`;
    await transaction`DELETE FROM vx.accounts WHERE id = ${deleted}`;
  });
  for (const piece of PIECES) {
    const { findings } = await auditIn(piece);
    expect(findings.map(({ account_id, rule }) => `${account_id} ${rule}`)).toContain(`${deleted} ledger_has_account`);
  }
});

test("the audit names lanes without an owner, but not those that are moved while it runs", async () => {
  const own = (isOwned: boolean) => database.owner`UPDATE vx.lanes SET is_owned = ${isOwned} WHERE lane IN (3, 4, 9)`;
  await own(false);
  expect((await auditIn(1_000)).findings).toEqual([
    { account_id: "", rule: "lane_has_owner", detail: "no cell owns the lanes 3-4,9: calls of their accounts are refused" },
  ]);
  let states = 0;
  const call = async <Row>(name: string, ...parameters: Parameter[]) => {
    const rows = await pool.call<Row>(name, ...parameters);
    if (name === "cell_state" && states++ === 0) await own(true);
    return rows;
  };
  const { findings } = await audit(withCall(pool, call), new AbortController().signal);
  expect(findings).toEqual([]);
});

test("the audit does not report rows that are written while it runs", async () => {
  const busy = ACCOUNTS.slice(4, 8);
  let before = (await auditIn(1_000)).entries;
  let seenInPart = 0;
  for (let round = 0; round < 6; round++) {
    // During the audit of each of the first pieces, rows are written before, in and after that piece.
    let written = 0n;
    const database = withCall(pool, async <Row>(name: string, ...parameters: Parameter[]) => {
      const isBusy = name === "audit" && written < 8n;
      const writing = isBusy && move(busy[Number(written++ % 4n)] as string, 1, `${round} ${written}`);
      const rows = await pool.call<Row>(name, ...parameters);
      await writing;
      return rows;
    });
    const { signal } = new AbortController();
    const { findings, entries } = await audit(database, signal, 1 + (round % 6));
    expect(findings).toEqual([]);
    expect(written).toBeGreaterThan(0n);
    if (entries > before && entries < before + written) seenInPart++;
    before += written;
  }
  expect(await auditIn(1_000)).toMatchObject({ entries: before, findings: [] });
  expect(seenInPart).toBeGreaterThan(0);
});

test("the audit limits the number of findings", async () => {
  const id = ACCOUNTS[11] as string;
  // Two of each row: its hash is not that of its number, and the numbers before it are missing.
  await database.owner`
    INSERT INTO vx.ledger SELECT r.* FROM vx.ledger l CROSS JOIN generate_series(2, 1200, 2) i
    CROSS JOIN LATERAL jsonb_populate_record(l, jsonb_build_object('account_id', ${id}::text, 'seq', i, 'id', 'led_' || i)) r
    WHERE l.account_id = ${ACCOUNTS[1] as string}`;
  for (const piece of [100, 10_000]) expect((await auditIn(piece)).findings).toHaveLength(1_000);
});

test("the audit ends when its signal aborts", async () => {
  const controller = new AbortController();
  controller.abort(new Error("aborted"));
  await expect(audit(pool, controller.signal)).rejects.toThrow("aborted");
});

test("a filtered page ends after a number of pieces, and the next pages find the rest", async () => {
  const accountId = ACCOUNTS[10] as string;
  await database.owner`
    UPDATE vx.ledger SET kind = 'generation', model = 'm', key_id = CASE WHEN seq IN (1, 2, 11) THEN 'key_a' ELSE 'key_b' END
    WHERE account_id = ${accountId}`;
  const filter = { kind: "", keyId: "key_a", model: "m", from: undefined, to: undefined };
  const pages = await allPages((pageToken) =>
    listFilteredEntries(pool, accountId, filter, readPage("entries", { pageSize: 5, pageToken }), { rows: 2n, max: 2 }),
  );
  expect(pages.map((rows) => rows.map(({ seq }) => seq))).toEqual([[11n], [], [2n, 1n]]);
});
