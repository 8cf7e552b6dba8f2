-- Adds what the holds p_placed of a batch need to their counters. The caller holds the locks of the lanes.
CREATE OR REPLACE FUNCTION hold_limits(p_limits hold_limit[], p_placed bigint[]) RETURNS void
  LANGUAGE plpgsql
AS $$
DECLARE
  v_lanes smallint[];
  v_accounts text[];
BEGIN
  WITH changes AS MATERIALIZED (
    SELECT (array_agg(l.counter))[1] AS counter, min(l.place) AS place, min(l.window_end) AS window_end, min(l.at) AS at,
           sum(l.needed)::bigint AS needed
    FROM unnest(p_limits) l WHERE l.n = ANY (p_placed) GROUP BY l.slot
  ), updated AS (
    UPDATE limit_counters c SET
      held = c.held + t.needed,
      spent = CASE WHEN c.window_end > t.at THEN c.spent ELSE 0 END,
      counted_since = CASE WHEN c.window_end > t.at THEN c.counted_since ELSE '-infinity' END,
      window_end = CASE WHEN c.window_end > t.at THEN c.window_end ELSE t.window_end END
    FROM changes t WHERE c.ctid = t.place
  ), added AS (
    INSERT INTO limit_counters (lane, account_id, limit_id, subject_id, user_id, window_end, spent, held, counted_since)
    SELECT (t.counter).lane, (t.counter).account_id, (t.counter).limit_id, (t.counter).subject_id, (t.counter).user_id,
           t.window_end, 0, t.needed, t.at
    FROM changes t WHERE t.place IS NULL
    RETURNING lane, account_id, user_id
  )
  SELECT array_agg(a.lane), array_agg(a.account_id) INTO v_lanes, v_accounts FROM added a WHERE a.user_id <> '';
  IF v_lanes IS NOT NULL THEN
    PERFORM count_users(n.lane, n.account_id, count(*)::integer)
      FROM unnest(v_lanes, v_accounts) AS n (lane, account_id) GROUP BY n.lane, n.account_id;
  END IF;
END
$$;
