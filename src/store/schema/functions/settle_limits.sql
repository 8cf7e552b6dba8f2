-- Releases what ended holds held of counters, and adds charges to the counters of all limits that apply to them now: also of those that
-- were set while the call ran. The counter of a limit that was removed is gone. The caller holds the locks of the lanes.
CREATE OR REPLACE FUNCTION settle_limits(p_released held_counter[], p_charges limit_charge[], p_with_plans boolean)
  RETURNS void
  LANGUAGE plpgsql
AS $$
DECLARE
  v_lanes smallint[];
  v_accounts text[];
BEGIN
  WITH parts AS (
    SELECT r.lane, r.account_id, r.limit_id, r.subject_id, r.user_id, NULL::timestamptz AS at,
           NULL::timestamptz AS window_end, 0 AS spent, r.amount AS released
    FROM unnest(p_released) r
    UNION ALL
    SELECT e.lane, e.account_id, l.id, l.subject_id, CASE WHEN l.per_user AND e.user_id <> ''
             THEN counter_user(e.lane, e.account_id, l.id, l.subject_id, e.user_id) ELSE '' END,
           e.at, window_end(l.period, e.at),
           CASE l.metric WHEN 'cost' THEN e.cost WHEN 'tokens' THEN e.tokens WHEN 'generations' THEN 1 ELSE 0 END, 0
    FROM unnest(p_charges) e
    CROSS JOIN LATERAL limits_of_keys(e.lane, e.account_id, e.key_ids, p_with_plans, e.at) l
    WHERE l.model = '' OR l.model = e.model
  ), changes AS MATERIALIZED (
    SELECT p.lane, p.account_id, p.limit_id, p.subject_id, p.user_id, max(p.at) AS at, max(p.window_end) AS window_end,
           sum(p.spent)::bigint AS spent, sum(p.released)::bigint AS released
    FROM parts p GROUP BY p.lane, p.account_id, p.limit_id, p.subject_id, p.user_id
  ), updated AS (
    UPDATE limit_counters c SET
      held = c.held - t.released,
      spent = CASE WHEN c.window_end <= t.at THEN t.spent ELSE c.spent + t.spent END,
      counted_since = CASE WHEN c.window_end <= t.at THEN '-infinity' ELSE c.counted_since END,
      window_end = CASE WHEN c.window_end <= t.at THEN t.window_end ELSE c.window_end END
    FROM changes t
    WHERE c.lane = t.lane AND c.account_id = t.account_id AND c.limit_id = t.limit_id AND c.subject_id = t.subject_id
      AND c.user_id = t.user_id
    RETURNING c.lane, c.account_id, c.limit_id, c.subject_id, c.user_id
  ), added AS (
    INSERT INTO limit_counters (lane, account_id, limit_id, subject_id, user_id, window_end, spent, held, counted_since)
    SELECT t.lane, t.account_id, t.limit_id, t.subject_id, t.user_id, t.window_end, t.spent, 0, t.at
    FROM changes t
    WHERE t.at IS NOT NULL AND NOT EXISTS (SELECT 1 FROM updated u WHERE u.lane = t.lane AND u.account_id = t.account_id
      AND u.limit_id = t.limit_id AND u.subject_id = t.subject_id AND u.user_id = t.user_id)
    RETURNING lane, account_id, user_id
  )
  SELECT array_agg(a.lane), array_agg(a.account_id) INTO v_lanes, v_accounts FROM added a WHERE a.user_id <> '';
  IF v_lanes IS NOT NULL THEN
    PERFORM count_users(n.lane, n.account_id, count(*)::integer)
      FROM unnest(v_lanes, v_accounts) AS n (lane, account_id) GROUP BY n.lane, n.account_id;
  END IF;
END
$$;
