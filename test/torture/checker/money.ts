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
 * Invariant 11, for each quarter of an hour, account, key, model and user. The load has fewer users than get sums of their
 * own.
 */
export async function checkUsage(owner: postgres.Sql): Promise<Violation[]> {
  const rows = await owner<{ id: string; detail: string }[]>`
    WITH entries AS (
      SELECT l.lane, l.account_id, floor(extract(epoch FROM l.created_at) / 900)::integer AS quarter, l.key_id, l.model,
             l.user_id, l.price_version, count(*) AS requests, sum(l.input) AS input, sum(l.output) AS output,
             -sum(l.amount_micros) AS cost
      FROM ledger l WHERE l.kind = 'generation' GROUP BY 1, 2, 3, 4, 5, 6, 7
    )
    SELECT coalesce(u.account_id, e.account_id) AS id,
           concat('requests ', u.requests, ', ledger ', e.requests, ', cost ', u.cost_micros, ', ledger ', e.cost) AS detail
    FROM entries e FULL JOIN usage_quarters u ON u.lane = e.lane AND u.account_id = e.account_id
      AND u.quarter = e.quarter AND u.key_id = e.key_id AND u.model = e.model AND u.user_id = e.user_id
      AND u.price_version = e.price_version
    WHERE (u.requests, u.input, u.output, u.cost_micros) IS DISTINCT FROM (e.requests, e.input, e.output, e.cost)`;
  return rows.map(({ id, detail }) => ({ rule: USAGE_RULE, text: `account ${id}: ${detail}` }));
}

const LIMIT_RULE = "13 spent = Σ ledger, held = Σ open holds";

/** The two sums of invariant 13 in one snapshot, for each counter of a limit. */
export async function checkLimits(owner: postgres.Sql): Promise<Violation[]> {
  const rows = await owner<{ id: string; detail: string }[]>`
    SELECT c.account_id AS id, concat(l.metric, ' per ', l.period, ' of ', c.subject_id, ': spent ', c.spent, ', ledger ', e.spent,
                                      ', held ', c.held, ', holds ', h.held) AS detail
    FROM (
      SELECT i.lane, i.account_id, i.subject_id, i.user_id, x.* FROM limit_counters i
      CROSS JOIN LATERAL unnest(i.limit_ids, i.window_ends, i.spent, i.held, i.counted_since)
        AS x (limit_id, window_end, spent, held, counted_since)
    ) c
    JOIN limits l ON l.lane IN (c.lane, 1024) AND l.id = c.limit_id
    CROSS JOIN LATERAL (
      SELECT coalesce(sum(CASE l.metric WHEN 'cost' THEN -e.amount_micros WHEN 'tokens'
          THEN e.input + e.cached_input + e.cache_write + e.output + e.reasoning WHEN 'generations' THEN 1 ELSE 0 END), 0) AS spent
      FROM ledger e
      WHERE e.lane = c.lane AND e.account_id = c.account_id AND e.kind = 'generation' AND l.model IN ('', e.model)
        AND (NOT l.per_user OR e.user_id = c.user_id)
        AND e.created_at < c.window_end AND e.created_at >= greatest(c.counted_since, CASE WHEN isfinite(c.window_end)
          THEN c.window_end - ('1 ' || l.period)::interval ELSE '-infinity' END)
        AND (c.subject_id IN (c.account_id, e.key_id) OR EXISTS (
          SELECT 1 FROM keys k WHERE k.lane = c.lane AND k.id = e.key_id AND c.subject_id = ANY (k.ancestors)))
    ) e
    CROSS JOIN LATERAL (
      SELECT coalesce(sum(x.amount), 0) AS held FROM holds o CROSS JOIN LATERAL unnest(o.counters) n
      CROSS JOIN LATERAL unnest(n.limit_ids, n.amounts) AS x (limit_id, amount)
      WHERE o.lane = c.lane AND o.account_id = c.account_id
        AND (x.limit_id, n.subject_id, n.user_id) = (c.limit_id, c.subject_id, c.user_id)
    ) h
    WHERE c.spent <> e.spent OR c.held <> h.held`;
  return rows.map(({ id, detail }) => ({ rule: LIMIT_RULE, text: `account ${id}: ${detail}` }));
}
