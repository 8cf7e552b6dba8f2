// Generation, account status, ledger pages and usage over ten million rows in two years of partitions, compared with a
// ledger that is nearly empty.
import { statfsSync } from "node:fs";
import { tmpdir } from "node:os";
import postgres from "postgres";
import { laneOfId } from "../../src/domain/lane.ts";
import { loginIn } from "../../test/support/embedded.ts";
import { type Checkout, OWN_CHECKOUT } from "../checkout.ts";
import { generateBody, getRequest, httpArm, postRequest } from "../http-load.ts";
import type { Load } from "../load.ts";
import { type Figure, type Part, Unavailable } from "../part.ts";
import { createPayers, type Payer } from "../payers.ts";
import { startServer } from "../server.ts";

const BYTES_PER_ROW = 600;
const ACCOUNTS = 1_000;
/** Enough rows that every page is full, the deep ones included. */
const FEW_ROWS = 200 * ACCOUNTS;
/** Partitions that hold the rows, in equal parts of each account. */
const MONTHS = 24;
const CONNECTIONS = 16;
const SECONDS = 2;

/** Keys of the account with half of all rows, each with usage in every quarter of an hour of the month. */
const USAGE_KEYS = 10;
const MONTH_QUARTERS = 30 * 96;
const JANUARY = Date.UTC(2026, 0) / 900_000;

const names = ["generate", "me", "firstPage", "deepPage"] as const;
type Name = (typeof names)[number];
type Big = Record<Name | "usage" | "keyPage", Load>;
type Small = Record<`${Name}Small`, Load>;

const TITLES: Record<Name, string> = {
  generate: "POST /v1/generate",
  me: "GET /v1/me",
  firstPage: "GET /v1/ledger, first page",
  deepPage: "GET /v1/ledger, deep page",
};

const usageFigures: Figure<Big>[] = [
  { name: `GET /v1/usage, a month by key and day, ${USAGE_KEYS} keys, p50`, unit: "ms", max: 50, value: (r) => r.usage.p50Ms },
  { name: "GET /v1/ledger of a key without entries, p50", unit: "ms", max: 20, value: (r) => r.keyPage.p50Ms },
];

export function bigLedger(rows: number): Part<Big, Small> {
  return {
    rounds: 5,
    warmUpRounds: 1,
    open: (checkout, cleanup) => openLedger(checkout, cleanup, rows),
    openBaselines: async (cleanup) => {
      const { generate, me, firstPage, deepPage } = await openLedger(OWN_CHECKOUT, cleanup, FEW_ROWS);
      return { generateSmall: generate, meSmall: me, firstPageSmall: firstPage, deepPageSmall: deepPage };
    },
    figures: [
      ...usageFigures,
      ...names.flatMap((name): Figure<Big & Small>[] => [
        { name: `${TITLES[name]}, ${rows.toLocaleString("en")} rows`, unit: "/s", value: (r: Big) => r[name].perSecond },
        { name: `  ${FEW_ROWS.toLocaleString("en")} rows`, unit: "/s", value: (r: Small) => r[`${name}Small`].perSecond },
        {
          name: "  p50, many rows / few rows",
          unit: "×",
          max: 1.5,
          value: (r: Big & Small) => r[name].p50Ms / r[`${name}Small`].p50Ms,
        },
      ]),
    ],
  };
}

async function openLedger(checkout: Checkout, cleanup: AsyncDisposableStack, rows: number) {
  const { bavail, bsize } = statfsSync(tmpdir());
  const neededBytes = rows * BYTES_PER_ROW * 1.5;
  if (bavail * bsize < neededBytes) throw new Unavailable(`${tmpdir()} needs ${neededBytes} free bytes`);
  const server = await startServer(checkout, cleanup);
  const payers = await createPayers(server, ACCOUNTS);
  const owner = postgres({ ...loginIn(server.dataDir), max: 1, onnotice: () => undefined });
  await fillLedger(owner, payers, rows);
  await owner.end();
  // One account has half of all rows, so its list is the longest.
  const secret = payers[0]?.secret ?? "";
  const deep = Buffer.from(`entries:${Math.floor(rows / 4)}`).toString("base64url");
  const arm = (requests: readonly string[]) => httpArm({ url: server.url, requests, connections: CONNECTIONS, seconds: SECONDS });
  const one = (requests: readonly string[]) => httpArm({ url: server.url, requests, connections: 1, seconds: SECONDS });
  const range = "from=2026-01-01T00:00:00Z&to=2026-01-31T00:00:00Z";
  return {
    generate: arm(payers.map((payer) => postRequest("/v1/generate", generateBody(), payer.secret))),
    me: arm(payers.map((payer) => getRequest("/v1/me", payer.secret))),
    firstPage: arm([getRequest("/v1/ledger", secret)]),
    deepPage: arm([getRequest(`/v1/ledger?page_token=${deep}`, secret)]),
    usage: one([getRequest(`/v1/usage?group_by=day,key&page_size=1000&${range}`, secret)]),
    keyPage: one([getRequest("/v1/ledger?key_id=key_without_entries", secret)]),
  };
}

/**
 * Writes directly into the table and creates the indexes afterwards: minutes instead of hours. The hashes
 * form no chain, because the bench does not read them.
 */
async function fillLedger(owner: postgres.Sql, payers: readonly Payer[], rows: number): Promise<void> {
  const lanes = payers.map(({ accountId }) => laneOfId(accountId));
  const hotRows = Math.floor(rows / 2);
  const otherRows = Math.floor((rows - hotRows) / (payers.length - 1));
  await owner.begin(async (sql) => {
    const indexes = await sql<{ definition: string; name: string }[]>`
      SELECT indexname AS name, indexdef AS definition FROM pg_indexes
      WHERE schemaname = 'vx' AND tablename = 'ledger' AND indexname NOT IN (SELECT conname FROM pg_constraint)`;
    const keys = await sql<{ name: string; definition: string }[]>`
      SELECT conname AS name, pg_get_constraintdef(oid) AS definition FROM pg_constraint
      WHERE conrelid = 'vx.ledger'::regclass AND contype IN ('p', 'u')`;
    // TRUNCATE in the same transaction lets PostgreSQL skip the write-ahead log for the rows.
    await sql`TRUNCATE vx.ledger`;
    const month = await createMonths(sql);
    for (const { name } of indexes) await sql`DROP INDEX vx.${sql(name)}`;
    for (const { name } of keys) await sql`ALTER TABLE vx.ledger DROP CONSTRAINT ${sql(name)}`;
    await sql`
      INSERT INTO vx.ledger (lane, account_id, seq, id, month, kind, amount_micros, balance_after_micros, reason, request_id,
        key_id, model, price_version, input, cached_input, cache_write, output, reasoning, images, image_tokens, user_id,
        trace_id, created_at, hash_version, hash)
      SELECT p.lane, p.account_id, s, 'led_' || md5(p.n || '-' || s),
        ${month} - 1 - (${MONTHS} * (p.rows - s) / p.rows), (CASE s WHEN 1 THEN 'credit' ELSE 'generation' END)::vx.entry_kind,
        CASE s WHEN 1 THEN 1000000000000 ELSE -33 END, 1000000000000 - 33 * (s - 1),
        'Generation with vx-sandbox-small: 7 tokens in, 25 tokens out', 'req_' || md5(s::text), p.key_id,
        'vx-sandbox-small', 1, 7, 0, 0, 25, 0, 0, 0, '', '', now() - make_interval(months => ${MONTHS}) * ((p.rows - s)::float8 / p.rows),
        1, sha256(convert_to(s::text, 'UTF8'))
      FROM (
        SELECT *, CASE u.n WHEN 1 THEN ${hotRows}::bigint ELSE ${otherRows}::bigint END AS rows
        FROM unnest(${lanes}::smallint[], ${payers.map(({ accountId }) => accountId)}::text[],
          ${payers.map(({ keyId }) => keyId)}::text[]) WITH ORDINALITY AS u (lane, account_id, key_id, n)
      ) p, generate_series(1, p.rows) s`;
    for (const { name, definition } of keys) {
      await sql.unsafe(`ALTER TABLE vx.ledger ADD CONSTRAINT ${name} ${definition}`);
    }
    for (const { definition } of indexes) await sql.unsafe(definition.replace(" ON ONLY ", " ON "));
    await sql`
      INSERT INTO vx.usage_quarters
      SELECT ${lanes[0] ?? 0}, ${payers[0]?.accountId ?? ""}, ${JANUARY} + q, 'key_' || k, 'vx-sandbox-small', '', 1, 9, 63, 0, 0, 225, 0,
        0, 0, 297
      FROM generate_series(0, ${MONTH_QUARTERS - 1}::int) q, generate_series(1, ${USAGE_KEYS}::int) k`;
    await sql`
      UPDATE vx.accounts a SET last_seq = l.seq, balance_micros = l.balance_after_micros, last_hash = l.hash
      FROM vx.ledger l WHERE l.lane = a.lane AND l.account_id = a.id
        AND l.seq = CASE a.id WHEN ${payers[0]?.accountId ?? ""} THEN ${hotRows}::bigint ELSE ${otherRows}::bigint END`;
  });
  await owner`VACUUM ANALYZE vx.ledger`;
  await owner`VACUUM ANALYZE vx.usage_quarters`;
  await owner`VACUUM ANALYZE vx.accounts`;
  await owner`CHECKPOINT`;
}

/** Replaces the partition of the time until now by one for each month. Returns the current month. */
async function createMonths(sql: postgres.TransactionSql): Promise<number> {
  const [first] = await sql<{ name: string; current: number }[]>`
    SELECT name, extract(year FROM now())::int * 12 - 1970 * 12 + extract(month FROM now())::int - 1 AS current
    FROM vx.ledger_partitions() WHERE first_month IS NULL`;
  if (!first) throw new Error("the ledger has no first partition");
  await sql`ALTER TABLE vx.ledger DETACH PARTITION vx.${sql(first.name)}`;
  for (let month = first.current - MONTHS; month <= first.current; month++)
    await sql.unsafe(`CREATE TABLE vx.ledger_month_${month} PARTITION OF vx.ledger FOR VALUES FROM (${month}) TO (${month + 1})`);
  return first.current;
}
