import { randomUUID } from "node:crypto";
import { beforeEach, expect, test } from "vitest";
import { laneOfId } from "../../src/domain/lane.ts";
import { pagesRead } from "../database/pages-read.ts";
import { post, sendAnyJson } from "../support/any-json.ts";
import { useTestApp } from "../support/app.ts";
import { createTestKey, type TestKey, useOperator } from "../support/fixtures.ts";
import { bearer } from "../support/protocols.ts";

const app = useTestApp();
const operator = useOperator(app);
let key: TestKey;
beforeEach(async () => {
  key = await createTestKey(operator, { scopes: ["read", "generate"] });
});

type Line = { kind: string; model: string; entries: number; amount_micros: number; description: string };
type Statement = Record<string, number> & { readonly lines: Line[]; readonly is_final: boolean };

const get = (month: string) => sendAnyJson(app.url, { verb: "GET", path: `/v1/statements/${month}`, secret: key.secret });

async function statement(month: string): Promise<Statement> {
  const { status, body } = await get(month);
  expect(status, JSON.stringify(body)).toBe(200);
  return body;
}

const credit = (amountMicros: bigint, reason: string) =>
  operator.creditAccount({ accountId: key.accountId, amountMicros, reason, idempotencyKey: randomUUID() });

const prompt = { messages: [{ role: "user", content: "hi" }], max_tokens: 10 };

const thisMonth = () => new Date().toISOString().slice(0, 7);
const monthBefore = (month: string) => {
  const date = new Date(`${month}-01T00:00:00Z`);
  date.setUTCMonth(date.getUTCMonth() - 1);
  return date.toISOString().slice(0, 7);
};

/** Moves what happened so far to the month before, as if it had happened then. */
async function monthPasses(): Promise<void> {
  const { owner } = app.database;
  await owner`
    UPDATE vx.ledger SET created_at = created_at - interval '32 days' WHERE account_id = ${key.accountId}`;
  await owner`
    UPDATE vx.usage_quarters SET quarter = quarter - 32 * 96 WHERE account_id = ${key.accountId}`;
  await owner`
    UPDATE vx.accounts SET last_at = last_at - interval '32 days' WHERE id = ${key.accountId}`;
}

const sumOf = ({ lines }: Statement, kind: string) =>
  lines.filter((line) => line.kind === kind).reduce((sum, line) => sum + line.amount_micros, 0);

function expectAddsUp(one: Statement): void {
  const parts = ["credits", "topups", "charges", "refunds", "adjustments", "expiries"];
  const sum = parts.reduce((total, name) => total + (one[`${name}_micros`] ?? 0), 0);
  expect((one.opening_balance_micros ?? 0) + sum).toBe(one.closing_balance_micros);
  expect(one.lines.slice(0, -1).reduce((total, line) => total + line.amount_micros, 0)).toBe(one.closing_balance_micros);
}

test("a statement has the charges by model and the other entries between its balances; the closing balance is the next opening balance", async () => {
  await credit(10_000_000n, "invoice 1001");
  for (const model of ["vx-sandbox-small", "vx-sandbox-large", "vx-sandbox-small"])
    expect((await post(app, key, "/v1/generate", { ...prompt, model })).status).toBe(200);
  const adjustment = { amountMicros: -500_000n, reason: "credited twice", idempotencyKey: "1" };
  await operator.adjustAccount({ accountId: key.accountId, ...adjustment });
  await monthPasses();
  await credit(2_000_000n, "invoice 1002");
  const month = thisMonth();
  const before = await statement(new Date(Date.now() - 32 * 86_400_000).toISOString().slice(0, 7));
  const current = await statement(month);
  expect(before.lines.map(({ kind, model, entries }) => [kind, model, entries])).toEqual([
    ["opening_balance", "", 0],
    ["credit", "", 1],
    ["adjustment", "", 1],
    ["generation", "vx-sandbox-large", 1],
    ["generation", "vx-sandbox-small", 2],
    ["closing_balance", "", 0],
  ]);
  expect(before).toMatchObject({
    is_final: true,
    opening_balance_micros: 0,
    credits_micros: 10_000_000,
    adjustments_micros: -500_000,
    currency: "USD",
  });
  const [charged] = await app.database.owner<{ micros: number }[]>`
    SELECT sum(amount_micros)::int AS micros FROM vx.ledger
    WHERE account_id = ${key.accountId} AND kind = 'generation'`;
  expect(sumOf(before, "generation")).toBe(charged?.micros);
  expect(current).toMatchObject({ is_final: false, credits_micros: 2_000_000 });
  expect(current.opening_balance_micros).toBe(before.closing_balance_micros);
  for (const one of [before, current]) expectAddsUp(one);
});

test("with Accept: text/csv, the lines are CSV and the sums are headers", async () => {
  await credit(10_000_000n, 'invoice "1001", paid');
  const response = await fetch(`${app.url}/v1/statements/${thisMonth()}`, {
    headers: { ...bearer(key.secret), accept: "text/csv" },
  });
  expect(response.headers.get("content-type")).toBe("text/csv; charset=utf-8");
  expect(response.headers.get("x-closing-balance-micros")).toBe("10000000");
  const [header, opening, line, closing] = (await response.text()).split("\r\n");
  expect(header).toBe("kind,created_at,id,description,model,entries,input_tokens,output_tokens,amount_micros,amount");
  expect(opening).toBe("opening_balance,,,,,0,0,0,0,$0.00");
  expect(line).toMatch(/^credit,\d{4}-\S+Z,led_\w+,"invoice ""1001"", paid",,1,0,0,10000000,\$10\.00$/);
  expect(closing).toBe("closing_balance,,,,,0,0,0,10000000,$10.00");
});

test("entries after the first 1,000 that are not charges are added up by kind", async () => {
  const { accountId } = key;
  await app.database.owner`
    INSERT INTO vx.ledger (lane, account_id, seq, id, month, kind, amount_micros, balance_after_micros, reason, request_id, key_id, model,
      price_version, input, cached_input, cache_write, output, reasoning, images, image_tokens, user_id, trace_id, created_at, hash_version, hash)
    SELECT vx.lane_of(${accountId}), ${accountId}, i, 'led_s' || i, (extract(year FROM t) - 1970) * 12 + extract(month FROM t) - 1, 'credit',
      1000, 1000 * i, 'n', '', '', '', 0, 0, 0, 0, 0, 0, 0, 0, '', '', t, 1, ''
    FROM generate_series(1, 1003) i, (SELECT clock_timestamp() AS t) now`;
  await app.database.owner`
    UPDATE vx.accounts SET last_seq = 1003, balance_micros = 1003000, last_at = clock_timestamp() WHERE id = ${accountId}`;
  const one = await statement(thisMonth());
  expect(one.lines).toHaveLength(1_003);
  expect(one.lines.at(-2)).toMatchObject({ kind: "credit", description: "", entries: 3, amount_micros: 3_000 });
  expectAddsUp(one);
});

test("a month is final a minute after its end", async () => {
  const { owner } = app.database;
  const [{ text = "" } = {}] = await owner<{ text: string }[]>`
    SELECT pg_get_functiondef('vx.seconds_of_clock'::regproc) AS text`;
  const isFinalAt = async (time: string) => {
    await owner.unsafe(text.replace("clock_timestamp()", `timestamptz '${time}'`));
    return (await statement("2099-12")).is_final;
  };
  expect(await isFinalAt("2100-01-01T00:00:59Z")).toBe(false);
  expect(await isFinalAt("2100-01-01T00:01:00Z")).toBe(true);
  await owner.unsafe(text);
});

test("a statement reads the sums of its month alone", async () => {
  const { owner } = app.database;
  await credit(1_000_000n, "invoice");
  await owner`
    INSERT INTO vx.usage_quarters (lane, account_id, quarter, key_id, model, user_id, price_version, requests, input, cached_input,
      cache_write, output, reasoning, images, image_tokens, cost_micros)
    SELECT vx.lane_of(${key.accountId}), ${key.accountId}, i, ${key.id}, 'm', '', 1, 1, 1, 0, 0, 1, 0, 0, 0, 1
    FROM generate_series(1, 20000) i`;
  const call = `get_statement(${laneOfId(key.accountId)}::smallint, '${key.accountId}', '2026-01-01Z', '2026-02-01Z')`;
  await owner.begin(async (transaction) => {
    // The first call also reads the catalog.
    await pagesRead(transaction, call);
    const { pages, rows } = await pagesRead(transaction, call);
    expect(rows).toBe(2);
    expect(pages).toBeLessThan(100);
  });
  await owner`DELETE FROM vx.usage_quarters WHERE account_id = ${key.accountId}`;
});

test("a month without entries repeats the balance", async () => {
  await credit(1_000_000n, "invoice");
  await monthPasses();
  await monthPasses();
  const { lines } = await statement(monthBefore(thisMonth()));
  expect(lines.map(({ kind, amount_micros }) => [kind, amount_micros])).toEqual([
    ["opening_balance", 1_000_000],
    ["closing_balance", 1_000_000],
  ]);
});

test.each(["2026-13", "2026-1", "0000-01", "abc"])("%s is no month", async (month) => {
  expect(await get(month)).toMatchObject({ status: 400, body: { error: { param: "month" } } });
});

test("a month in the future is refused, and one whose entries are archived is not found", async () => {
  expect(await get("2999-01")).toMatchObject({ status: 400, body: { error: { param: "month" } } });
  await app.database.owner`
    INSERT INTO vx.ledger_archives (month, file, sha256, entries, removed_at) VALUES (600, 'x', '', 1, now())`;
  await app.database.owner`
    INSERT INTO vx.archived_ledger (lane, account_id, month, end_quarter, seq, balance_micros, hash, usage_fingerprint)
    VALUES (vx.lane_of(${key.accountId}), ${key.accountId}, 600, extract(epoch FROM timestamptz '2020-02-01Z') / 900, 7, 42, '', 0)`;
  expect((await get("2020-01")).status).toBe(404);
  expect((await statement("2020-02")).opening_balance_micros).toBe(42);
  await app.database.owner`DELETE FROM vx.ledger_archives WHERE month = 600`;
});
