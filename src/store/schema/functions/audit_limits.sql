-- Compares the counters of limits of a lane with the ledger and with the open holds: those of at most p_limit accounts after
-- p_account_id. Windows of an hour and longer are compared with the usage, which the audit compares with the ledger and which keeps
-- the sums of archived months; windows of a minute, those that are not counted from their start or in which the key was on another plan,
-- and those of users with the entries.
-- Where these are archived, users are compared with the usage if it names all of them, and the others are not compared.
--
-- Returns one row per difference. The first row has an empty rule and the account after which the next piece starts: none at the end of the
-- lane. Locks the ledger before its snapshot is taken: see audit.
CREATE OR REPLACE FUNCTION audit_limits(p_lane smallint, p_account_id text, p_limit integer, p_max_findings integer)
  RETURNS TABLE (account_id text, rule text, detail text, next_account_id text)
  LANGUAGE plpgsql SECURITY DEFINER
  SET search_path FROM CURRENT
  SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
BEGIN
  LOCK TABLE ledger IN ACCESS SHARE MODE;
  RETURN QUERY
  WITH ids AS MATERIALIZED (
    SELECT a.id, a.last_seq FROM accounts a WHERE a.lane = p_lane AND a.id > p_account_id ORDER BY a.id LIMIT p_limit
  ), counters AS MATERIALIZED (
    SELECT i.id AS account_id, c.limit_id, c.subject_id, c.user_id, c.spent, c.held, c.window_end, c.uncounted, l.metric, l.period, l.model,
           l.per_user, w.since, r.is_read, CASE WHEN r.is_read AND isfinite(w.since)
             THEN seq_at(p_lane, i.id, w.since, i.last_seq) ELSE 0 END AS first_seq
    FROM ids i
    CROSS JOIN LATERAL (
      SELECT o.subject_id, o.user_id, x.*, coalesce((
        SELECT n.uncounted FROM limit_counters n WHERE n.lane = p_lane AND n.account_id = i.id AND n.subject_id = o.subject_id
          AND n.plan = o.plan AND n.user_id = ''), '{}') AS uncounted
      FROM limit_counters o
      CROSS JOIN LATERAL unnest((o.counter).limit_ids, (o.counter).window_ends, (o.counter).spent, (o.counter).held, (o.counter).counted_since)
        AS x (limit_id, window_end, spent, held, counted_since)
      WHERE o.lane = p_lane AND o.account_id = i.id
    ) c
    JOIN limits l ON l.lane IN (p_lane, 1024) AND l.id = c.limit_id
    CROSS JOIN LATERAL (
      SELECT greatest(c.counted_since, window_start(l.period, c.window_end - interval '1 microsecond')) AS since
    ) w
    CROSS JOIN LATERAL (
      SELECT EXISTS (SELECT 1 FROM archived_ledger h WHERE h.lane = p_lane AND h.account_id = i.id
        AND to_timestamp(h.end_quarter * 900.0) > w.since) AS is_archived
    ) a
    CROSS JOIN LATERAL (
      SELECT CASE WHEN c.uncounted = '{}' THEN false WHEN a.is_archived THEN true
        ELSE c.uncounted && int8range(seq_at(p_lane, i.id, w.since, i.last_seq), seq_at(p_lane, i.id, c.window_end, i.last_seq))
        END AS has_gap
    ) g
    -- Whether the entries are read: NULL if what was counted cannot be computed again.
    CROSS JOIN LATERAL (
      SELECT CASE WHEN c.user_id = '(other)' OR c.counted_since = 'infinity' THEN NULL
        WHEN NOT (l.per_user OR l.period = 'minute' OR isfinite(c.counted_since) OR g.has_gap) THEN false
        WHEN NOT a.is_archived THEN true
        WHEN l.period <> 'minute' AND NOT isfinite(c.counted_since) AND NOT g.has_gap AND NOT EXISTS (SELECT 1 FROM usage_quarters u
          WHERE u.lane = p_lane AND u.account_id = i.id AND u.user_id = '(other)') THEN false END AS is_read
    ) r
  ), sums AS (
    SELECT c.account_id, c.limit_id, c.subject_id, c.user_id, c.metric, c.spent, c.held, c.is_read, x.spent + y.spent AS expected_spent,
           h.held AS expected_held
    FROM counters c
    CROSS JOIN LATERAL (
      SELECT coalesce(sum(CASE c.metric WHEN 'cost' THEN u.cost_micros WHEN 'cost_alert' THEN u.cost_micros WHEN 'generations' THEN u.requests
               ELSE u.input + u.cached_input + u.cache_write + u.output + u.reasoning END), 0) AS spent
      FROM usage_quarters u
      WHERE NOT c.is_read AND u.lane = p_lane AND u.account_id = c.account_id AND (c.model = '' OR u.model = c.model)
        AND (NOT c.per_user OR u.user_id = c.user_id)
        AND u.quarter >= CASE WHEN isfinite(c.since) THEN floor(extract(epoch FROM c.since) / 900) ELSE 0 END
        AND (NOT isfinite(c.window_end) OR u.quarter < floor(extract(epoch FROM c.window_end) / 900))
        AND (c.subject_id = c.account_id OR c.subject_id = u.key_id OR EXISTS (
          SELECT 1 FROM keys k WHERE k.lane = p_lane AND k.id = u.key_id AND c.subject_id = ANY (k.ancestors)))
    ) x
    CROSS JOIN LATERAL (
      SELECT coalesce(sum(CASE c.metric WHEN 'cost' THEN -e.amount_micros WHEN 'cost_alert' THEN -e.amount_micros WHEN 'generations' THEN 1
               ELSE e.input::bigint + e.cached_input + e.cache_write + e.output + e.reasoning END), 0) AS spent
      FROM ledger e
      WHERE c.is_read AND e.lane = p_lane AND e.account_id = c.account_id AND e.seq >= c.first_seq AND e.kind = 'generation'
        AND e.created_at >= c.since AND e.created_at < c.window_end AND NOT c.uncounted @> e.seq
        AND (c.model = '' OR e.model = c.model) AND (NOT c.per_user OR e.user_id = c.user_id)
        AND (c.subject_id = c.account_id OR c.subject_id = e.key_id OR EXISTS (
          SELECT 1 FROM keys k WHERE k.lane = p_lane AND k.id = e.key_id AND c.subject_id = ANY (k.ancestors)))
    ) y
    CROSS JOIN LATERAL (
      SELECT coalesce(sum(x.amount), 0) AS held FROM holds o CROSS JOIN LATERAL unnest(o.counters) n
      CROSS JOIN LATERAL unnest(n.limit_ids, n.amounts) AS x (limit_id, amount)
      WHERE o.lane = p_lane AND o.account_id = c.account_id AND x.limit_id = c.limit_id
        AND n.subject_id = c.subject_id AND n.user_id = c.user_id
    ) h
  ), findings AS (
    SELECT s.account_id, 'limit_spent_equals_ledger' AS rule,
           format('limit %s (%s) of %s: spent %s, ledger adds up to %s', s.limit_id, s.metric, s.subject_id, s.spent,
             s.expected_spent) AS detail
    FROM sums s WHERE s.metric <> 'concurrent' AND s.is_read IS NOT NULL AND s.spent <> s.expected_spent
    UNION ALL
    SELECT s.account_id, 'limit_held_equals_open_holds',
           format('limit %s (%s) of %s: held %s, open holds add up to %s', s.limit_id, s.metric, s.subject_id, s.held,
             s.expected_held)
    FROM sums s WHERE s.held <> s.expected_held
  )
  SELECT '', '', '', CASE WHEN (SELECT count(*) FROM ids) = p_limit THEN (SELECT max(i.id) FROM ids i) END
  UNION ALL
  (SELECT f.account_id, f.rule, f.detail, NULL FROM findings f LIMIT p_max_findings);
END
$$;
