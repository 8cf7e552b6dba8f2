import type postgres from "postgres";
import { EXPECTED_HASH_IN_PATH } from "../../support/ledger-hash.ts";
import type { Violation } from "./facts.ts";

const RULE = "1 balance = Σ ledger, held = Σ holds";

/** Invariant 1 in one snapshot of the tables. It holds at any moment, under any fault. */
export async function checkMoney(owner: postgres.Sql): Promise<Violation[]> {
  const rows = await owner<{ id: string; detail: string }[]>`
    SELECT a.id, concat('balance ', a.balance_micros, ', ledger ', l.sum, ', held ', a.held_micros, ', holds ', h.sum,
                        ', rows ', l.count, ' of ', a.last_seq) AS detail
    FROM accounts a
    CROSS JOIN LATERAL (SELECT coalesce(sum(amount_micros), 0) AS sum, count(*) AS count FROM ledger l
                        WHERE l.lane = a.lane AND l.account_id = a.id) l
    CROSS JOIN LATERAL (SELECT coalesce(sum(amount_micros), 0) AS sum FROM holds h
                        WHERE h.lane = a.lane AND h.account_id = a.id) h
    WHERE a.balance_micros <> l.sum OR a.held_micros <> h.sum OR a.held_micros NOT BETWEEN 0 AND a.balance_micros
       OR a.last_seq <> l.count`;
  return rows.map(({ id, detail }) => ({ rule: RULE, text: `account ${id}: ${detail}` }));
}

/** Recomputes the hash of every row. */
export async function checkHashes(owner: postgres.Sql): Promise<Violation[]> {
  const rows = await owner<{ id: string }[]>`
    SELECT id FROM (
      SELECT l.id, l.hash, ${owner.unsafe(EXPECTED_HASH_IN_PATH)} AS expected
      FROM ledger l WINDOW c AS (PARTITION BY l.account_id ORDER BY l.seq)
    ) chain WHERE hash <> expected`;
  return rows.map(({ id }) => ({ rule: RULE, text: `the hash of row ${id} is wrong` }));
}

const USAGE_RULE = "11 usage = Σ ledger";

/**
 * Invariant 11, for each quarter of an hour, account, key, model, user, upstream and prices. The load has fewer users than get sums of their
 * own.
 */
export async function checkUsage(owner: postgres.Sql): Promise<Violation[]> {
  const rows = await owner<{ id: string; detail: string }[]>`
    WITH entries AS (
      SELECT l.lane, l.account_id, floor(extract(epoch FROM l.created_at) / 900)::integer AS quarter, l.key_id, l.model,
             l.user_id, l.price_version, l.price_tier, l.price_list_version, l.upstream, count(*) AS requests, sum(l.input) AS input, sum(l.output) AS output,
             -sum(l.amount_micros) AS cost, coalesce(sum(l.upstream_cost_micros), 0) AS upstream_cost
      FROM ledger l WHERE l.kind = 'generation' GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9, 10
    )
    SELECT coalesce(u.account_id, e.account_id) AS id,
           concat('requests ', u.requests, ', ledger ', e.requests, ', cost ', u.cost_micros, ', ledger ', e.cost) AS detail
    FROM entries e FULL JOIN usage_quarters u ON u.lane = e.lane AND u.account_id = e.account_id
      AND u.quarter = e.quarter AND u.key_id = e.key_id AND u.model = e.model AND u.user_id = e.user_id
      AND u.price_version = e.price_version AND u.price_tier = e.price_tier
      AND u.price_list_version = e.price_list_version AND u.upstream = e.upstream
    WHERE (u.requests, u.input, u.output, u.cost_micros, u.upstream_cost_micros)
      IS DISTINCT FROM (e.requests, e.input, e.output, e.cost, e.upstream_cost)`;
  return rows.map(({ id, detail }) => ({ rule: USAGE_RULE, text: `account ${id}: ${detail}` }));
}
