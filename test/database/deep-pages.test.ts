import { beforeAll, describe, expect, test } from "vitest";
import { laneOfId } from "../../src/domain/lane.ts";
import { createTestDatabase } from "../support/database.ts";
import { started } from "../support/started.ts";
import { pagesRead } from "./pages-read.ts";

const ACCOUNT = "acct_000010000";
const LANE = `${laneOfId(ACCOUNT)}::smallint`;
const CALLER = "acct_000020000";
const CALLER_LANE = `${laneOfId(CALLER)}::smallint`;
const ROWS = 20_000;
/** An index lookup and ten rows with what belongs to them read some pages of 8 KiB; 20,000 rows take hundreds. */
const FEW_PAGES = 100;

const database = started(() => createTestDatabase());
beforeAll(async () => {
  const { owner } = database;
  const tables = await owner<{ name: string }[]>`
    SELECT relid::regclass::text AS name FROM pg_partition_tree('vx.ledger') WHERE isleaf UNION ALL SELECT 'vx.accounts'`;
  for (const { name } of tables) await owner.unsafe(`ALTER TABLE ${name} SET (autovacuum_enabled = false)`);
  await owner`
    INSERT INTO vx.accounts (lane, id, name, plan, created_at)
    SELECT vx.lane_of(id), id, 'test', 'free', now()
    FROM (SELECT 'acct_' || lpad(i::text, 9, '0') AS id FROM generate_series(1, ${ROWS}::int) i) s`;
  await owner`
    INSERT INTO vx.ledger (lane, account_id, seq, id, month, kind, amount_micros, balance_after_micros, reason, request_id,
      key_id, model, price_version, input, cached_input, cache_write, output, reasoning, images, image_tokens, user_id,
      trace_id, created_at, hash_version, hash)
    SELECT ${laneOfId(ACCOUNT)}, ${ACCOUNT}, i, 'led_' || i, 0, 'credit', 1, i, 'test', '', '', '', 0, 0, 0, 0, 0, 0, 0, 0, '', '', now(), 1, ''
    FROM generate_series(1, ${ROWS}::int) i`;
  await owner`UPDATE vx.accounts SET last_seq = ${ROWS} WHERE id = ${ACCOUNT}`;
  // One of a thousand generations has another key, and there are ten credits between them. With as many accounts as keys, in a partition of their own, PostgreSQL
  // estimates the same cost for the index of keys and the primary key.
  await owner`
    INSERT INTO vx.ledger (lane, account_id, seq, id, month, kind, amount_micros, balance_after_micros, reason, request_id,
      key_id, model, price_version, input, cached_input, cache_write, output, reasoning, images, image_tokens, user_id,
      trace_id, created_at, hash_version, hash)
    SELECT vx.lane_of(g.account_id), g.account_id, g.seq, 'led_g' || g.account_id || g.seq,
      (SELECT max(p.first_month) FROM vx.ledger_partitions() p), g.kind::vx.entry_kind, 1, 1, 'test', '', g.key_id, 'm', 0, 0, 0, 0, 0, 0, 0,
      0, '', '', now(), 1, ''
    FROM (
      SELECT ${CALLER} AS account_id, i AS seq, CASE i % 2000 WHEN 1 THEN 'credit' ELSE 'generation' END AS kind,
        CASE i % 1000 WHEN 0 THEN 'rare' ELSE 'key' END AS key_id
      FROM generate_series(1, ${ROWS}::int) i
      UNION ALL
      SELECT a.id, 1, 'generation', 'key_' || a.id FROM vx.accounts a WHERE a.id < 'acct_000005000'
    ) g`;
});

const lists: [what: string, call: string][] = [
  ["the first page of entries", `list_entries(${LANE}, '${ACCOUNT}', 0, 10)`],
  ["a deep page of entries", `list_entries(${LANE}, '${ACCOUNT}', 100, 10)`],
  ["a deep page of credits", `filter_entries(${LANE}, '${ACCOUNT}', 'credit', '', '', 1, 100, 10)`],
  ["the entries of a rare key", `filter_entries(${CALLER_LANE}, '${CALLER}', '', 'rare', '', 1, 19000, 10)`],
  ["the credits between generations", `filter_entries(${CALLER_LANE}, '${CALLER}', 'credit', '', '', 1, ${ROWS}, 10)`],
  ["the first page of accounts", "list_accounts('', 10)"],
  ["accounts found by name", "search_accounts('name', 'test', '', '', 10)"],
  ["a deep page of accounts found by name", "search_accounts('name', 'test', 'test', 'acct_000019900', 10)"],
  ["a deep page of accounts", "list_accounts('acct_000000100', 10)"],
];

/** PostgreSQL chooses the cached plan by estimates, so every plan must be fast. */
const plans = ["force_generic_plan", "force_custom_plan"];

describe.each(["without", "with"])("%s statistics", (statistics) => {
  beforeAll(async () => {
    if (statistics === "with") await database.owner`ANALYZE vx.ledger, vx.accounts`;
  });

  test.each(lists.flatMap((list) => plans.map((plan) => [...list, plan] as const)))(
    "listing %s reads few disk pages: %s, %s",
    async (_, call, plan) => {
      const { owner } = database;
      const [known] = await owner`SELECT reltuples >= 0 AS "isKnown" FROM pg_class WHERE oid = 'vx.ledger'::regclass`;
      expect(known?.isKnown).toBe(statistics === "with");
      const pages: number[] = [];
      await owner.begin(async (transaction) => {
        await transaction`SELECT set_config('plan_cache_mode', ${plan}, true)`;
        for (let i = 0; i < 3; i++) {
          const read = await pagesRead(transaction, call);
          expect(read.rows).toBe(10);
          pages.push(read.pages);
        }
      });
      expect(Math.min(...pages)).toBeLessThan(FEW_PAGES);
    },
  );
});
