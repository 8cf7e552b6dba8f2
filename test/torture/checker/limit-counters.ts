import type postgres from "postgres";
import { CHANGING_KEY } from "../limits.ts";
import type { Violation } from "./facts.ts";

const RULE = "13 spent = Σ ledger, held = Σ open holds, both ≤ amount";

/**
 * Invariant 13 for each counter of a limit, in one snapshot. The windows are those of the calendar. Only limits of plans and of minutes
 * are counted from when they were set. Lower amounts of the key whose limits change apply to later calls, so its amounts are not
 * compared.
 */
export async function checkCounters(owner: postgres.Sql): Promise<Violation[]> {
  const rows = await owner<{ id: string; detail: string }[]>`
    SELECT c.account_id AS id, concat(l.metric, ' per ', l.period, ' of ', c.subject_id, ' ', c.user_id, ': spent ', c.spent, ', ledger ',
           e.spent, ', held ', c.held, ', holds ', h.held, ', amount ', a.amount, ', window until ', c.window_end) AS detail
    FROM (
      SELECT i.lane, i.account_id, i.subject_id, i.user_id, x.* FROM limit_counters i
      CROSS JOIN LATERAL unnest((i.counter).limit_ids, (i.counter).window_ends, (i.counter).spent, (i.counter).held,
        (i.counter).counted_since)
        AS x (limit_id, window_end, spent, held, counted_since)
    ) c
    JOIN limits l ON l.lane IN (c.lane, 1024) AND l.id = c.limit_id
    CROSS JOIN LATERAL (
      SELECT CASE WHEN l.metric = 'cost_alert' OR l.owner_id IN (SELECT k.id FROM keys k WHERE k.name = ${CHANGING_KEY}) THEN NULL
             ELSE greatest(l.amount, l.temporary_amount) END AS amount
    ) a
    CROSS JOIN LATERAL (
      SELECT CASE WHEN isfinite(c.window_end) THEN c.window_end - ('1 ' || l.period)::interval ELSE '-infinity' END AS start
    ) w
    CROSS JOIN LATERAL (
      SELECT coalesce(sum(CASE l.metric WHEN 'cost' THEN -e.amount_micros WHEN 'cost_alert' THEN -e.amount_micros WHEN 'tokens'
          THEN e.input + e.cached_input + e.cache_write + e.output + e.reasoning WHEN 'generations' THEN 1 ELSE 0 END), 0) AS spent
      FROM ledger e
      WHERE e.lane = c.lane AND e.account_id = c.account_id AND e.kind = 'generation' AND l.model IN ('', e.model)
        AND (NOT l.per_user OR e.user_id = c.user_id) AND e.created_at < c.window_end AND e.created_at >= w.start
        AND (e.created_at >= c.counted_since OR NOT (l.lane = 1024 OR l.period = 'minute'))
        AND (c.subject_id IN (c.account_id, e.key_id) OR EXISTS (
          SELECT 1 FROM keys k WHERE k.lane = c.lane AND k.id = e.key_id AND c.subject_id = ANY (k.ancestors)))
    ) e
    CROSS JOIN LATERAL (
      SELECT coalesce(sum(x.amount), 0) AS held FROM holds o CROSS JOIN LATERAL unnest(o.counters) n
      CROSS JOIN LATERAL unnest(n.limit_ids, n.amounts) AS x (limit_id, amount)
      WHERE o.lane = c.lane AND o.account_id = c.account_id
        AND (x.limit_id, n.subject_id, n.user_id) = (c.limit_id, c.subject_id, c.user_id)
    ) h
    WHERE c.spent IS DISTINCT FROM e.spent OR c.held IS DISTINCT FROM h.held OR c.spent + c.held > a.amount
      OR isfinite(c.window_end) <> (l.period NOT IN ('', 'total'))
      OR isfinite(c.window_end) AND date_trunc(l.period, c.window_end, 'UTC') <> c.window_end`;
  return rows.map(({ id, detail }) => ({ rule: RULE, text: `account ${id}: ${detail}` }));
}

/** No limit of a key is above the same limit of a key that created it. */
export async function checkLimitsOfChildren(owner: postgres.Sql): Promise<Violation[]> {
  const rows = await owner<{ id: string; detail: string }[]>`
    SELECT k.id, concat(l.metric, ' per ', l.period, ': ', l.amount, ', that of ', p.owner_id, ' is ', p.amount) AS detail
    FROM keys k
    JOIN limits l ON l.lane = k.lane AND l.owner_id = k.id
    JOIN limits p ON p.lane = k.lane AND p.owner_id = ANY (k.ancestors)
      AND (p.metric, p.period, p.model, p.per_user) = (l.metric, l.period, l.model, l.per_user)
    WHERE l.amount > p.amount`;
  return rows.map(({ id, detail }) => ({ rule: "a child's limit ≤ its parent's", text: `key ${id}: ${detail}` }));
}
