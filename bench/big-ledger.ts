// Generation, account status and ledger pages over ten million rows, compared with a ledger that is nearly
// empty.
import { statfsSync } from "node:fs";
import { tmpdir } from "node:os";
import type postgres from "postgres";
import { laneOfId } from "../src/domain/lane.ts";
import { generateBody, getRequest, openHttpLoad, postRequest } from "./http-load.ts";
import { createPayers, type Payer } from "./payers.ts";
import { type Server, startServer } from "./server.ts";
import { type BenchDatabase, type Figure, hammer, type Load, median, startDatabase } from "./support.ts";

const BYTES_PER_ROW = 600;
const ACCOUNTS = 1_000;
/** Enough rows that every page is full, the deep ones included. */
const FIRST_ROWS = 200;
const CALLERS = 16;
const SECONDS = 2;
const ROUNDS = 5;
const AT_MOST = 1.3;

export async function bigLedger(database: BenchDatabase, rows: number): Promise<Figure[]> {
  const { bavail, bsize } = statfsSync(tmpdir());
  if (bavail * bsize < rows * BYTES_PER_ROW * 1.5) {
    console.log(`  SKIPPED: ${rows} rows need more room than there is in ${tmpdir()}`);
    return [];
  }
  const small = await startDatabase();
  try {
    const big = await openSide(database, rows);
    const little = await openSide(small, FIRST_ROWS * ACCOUNTS);
    const figures = [];
    for (const name of Object.keys(REQUESTS)) figures.push(...(await compare(name, big, little)));
    for (const { server } of [big, little]) await server.stop();
    return figures;
  } finally {
    await small.stop();
  }
}

type Side = { readonly server: Server; readonly payers: readonly Payer[]; readonly rows: number };

async function openSide(database: BenchDatabase, rows: number): Promise<Side> {
  const payers = await createPayers(database.owner, ACCOUNTS);
  await fillLedger(database.owner, payers, rows);
  return { server: await startServer(database), payers, rows };
}

/** One account has half of all rows, so its list is the longest. */
const REQUESTS: Record<string, (side: Side) => string[]> = {
  "POST /v1/generate": ({ payers }) =>
    payers.map(({ secret }) => postRequest("/v1/generate", generateBody(), secret)),
  "GET /v1/me": ({ payers }) => payers.map(({ secret }) => getRequest("/v1/me", secret)),
  "GET /v1/ledger, first page": ({ payers }) => [getRequest("/v1/ledger", payers[0]?.secret ?? "")],
  "GET /v1/ledger, deep page": ({ payers, rows }) => {
    const token = Buffer.from(`entries:${Math.floor(rows / 4)}`).toString("base64url");
    return [getRequest(`/v1/ledger?page_token=${token}`, payers[0]?.secret ?? "")];
  },
};

/**
 * Writes directly into the table and creates the indexes afterwards: minutes instead of hours. The hashes
 * form no chain, because the bench does not read them.
 */
async function fillLedger(owner: postgres.Sql, payers: readonly Payer[], rows: number): Promise<void> {
  const lanes = payers.map(({ accountId }) => laneOfId(accountId));
  const hotRows = Math.floor(rows / 2);
  const otherRows = Math.floor((rows - hotRows) / (payers.length - 1));
  await owner.begin(async (sql) => {
    const keys = await sql<{ name: string; definition: string }[]>`
      SELECT conname AS name, pg_get_constraintdef(oid) AS definition FROM pg_constraint
      WHERE conrelid = 'vx.ledger'::regclass AND contype IN ('p', 'u')`;
    // TRUNCATE in the same transaction lets PostgreSQL skip the write-ahead log for the rows.
    await sql`TRUNCATE vx.ledger`;
    for (const { name } of keys) await sql`ALTER TABLE vx.ledger DROP CONSTRAINT ${sql(name)}`;
    await sql`
      INSERT INTO vx.ledger (lane, account_id, seq, id, month, kind, amount_micros, balance_after_micros, reason, request_id,
        key_id, model, input_tokens, output_tokens, input_micros_per_million_tokens, output_micros_per_million_tokens,
        created_at, hash_version, hash)
      SELECT p.lane, p.account_id, s, 'led_' || md5(p.n || '-' || s), 0, CASE s WHEN 1 THEN 'credit' ELSE 'generation' END,
        CASE s WHEN 1 THEN 1000000000000 ELSE -33 END, 1000000000000 - 33 * (s - 1),
        'Generation with vx-sandbox-small: 7 tokens in, 25 tokens out', 'req_' || md5(s::text), p.key_id,
        'vx-sandbox-small', 7, 25, 250000, 1250000, now() - interval '1 year' + s * interval '1 second',
        1, sha256(convert_to(s::text, 'UTF8'))
      FROM unnest(${lanes}::smallint[], ${payers.map(({ accountId }) => accountId)}::text[],
          ${payers.map(({ keyId }) => keyId)}::text[]) WITH ORDINALITY AS p (lane, account_id, key_id, n),
        generate_series(1, CASE p.n WHEN 1 THEN ${hotRows}::bigint ELSE ${otherRows}::bigint END) s`;
    for (const { name, definition } of keys) {
      await sql.unsafe(`ALTER TABLE vx.ledger ADD CONSTRAINT ${name} ${definition}`);
    }
    await sql`
      UPDATE vx.accounts a SET last_seq = l.seq, balance_micros = l.balance_after_micros, last_hash = l.hash
      FROM vx.ledger l WHERE l.lane = a.lane AND l.account_id = a.id
        AND l.seq = CASE a.id WHEN ${payers[0]?.accountId ?? ""} THEN ${hotRows}::bigint ELSE ${otherRows}::bigint END`;
  });
  await owner`VACUUM ANALYZE vx.ledger`;
  await owner`VACUUM ANALYZE vx.accounts`;
  await owner`CHECKPOINT`;
}

async function compare(name: string, big: Side, little: Side): Promise<Figure[]> {
  const requestsOf = REQUESTS[name] as (side: Side) => string[];
  const loads = [
    await openHttpLoad(big.server.url, CALLERS, requestsOf(big)),
    await openHttpLoad(little.server.url, CALLERS, requestsOf(little)),
  ] as const;
  for (const load of loads) await hammer(CALLERS, SECONDS, load.call);
  const rounds: { big: Load; little: Load }[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    rounds.push({
      big: await hammer(CALLERS, SECONDS, loads[0].call),
      little: await hammer(CALLERS, SECONDS, loads[1].call),
    });
  }
  for (const load of loads) load.close();
  return [
    {
      name: `${name}, ${big.rows.toLocaleString("en")} rows`,
      value: median(rounds.map((r) => r.big.perSecond)),
      unit: "/s",
    },
    { name: "  a ledger that has begun", value: median(rounds.map((r) => r.little.perSecond)), unit: "/s" },
    {
      name: "  p50, full / begun",
      value: median(rounds.map((r) => r.big.p50Ms / r.little.p50Ms)),
      unit: "×",
      atMost: AT_MOST,
    },
    {
      name: "  calls per second, begun / full",
      value: median(rounds.map((r) => r.little.perSecond / r.big.perSecond)),
      unit: "×",
      atMost: AT_MOST,
    },
  ];
}
