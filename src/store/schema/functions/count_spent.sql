-- Gives new limits of an account or a key counters with what the usage of their windows is already. Those of a minute start at zero.
-- Users that the usage counts as "(other)" are not known, so that a counter of a user is not exact if there are any.
CREATE OR REPLACE FUNCTION count_spent(p_lane smallint, p_account_id text, p_owner_id text, p_limit_ids text[])
  RETURNS void
  LANGUAGE plpgsql
AS $$
DECLARE
  v_at constant timestamptz := (SELECT greatest(clock_timestamp(), a.last_at) FROM accounts a
    WHERE a.lane = p_lane AND a.id = p_account_id);
  v_users integer;
BEGIN
  WITH sums AS MATERIALIZED (
    SELECT l.id, l.period, CASE WHEN l.per_user THEN u.user_id ELSE '' END AS user_id,
           sum(CASE l.metric WHEN 'cost' THEN u.cost_micros WHEN 'generations' THEN u.requests
             ELSE u.input + u.cached_input + u.cache_write + u.output + u.reasoning END)::bigint AS spent,
           bool_or(l.per_user) AS per_user
    FROM limits l
    CROSS JOIN LATERAL (SELECT window_start(l.period, v_at) AS start) w
    JOIN usage_quarters u ON u.lane = p_lane AND u.account_id = p_account_id
      AND u.quarter >= CASE WHEN w.start = '-infinity' THEN 0 ELSE floor(extract(epoch FROM w.start) / 900)::integer END
    WHERE l.lane = p_lane AND l.id = ANY (p_limit_ids) AND l.period NOT IN ('', 'minute')
      AND (l.model = '' OR u.model = l.model)
      AND (p_owner_id = p_account_id OR u.key_id = p_owner_id OR EXISTS (
        SELECT 1 FROM keys k WHERE k.lane = p_lane AND k.id = u.key_id AND p_owner_id = ANY (k.ancestors)))
    GROUP BY l.id, l.period, 3
  ), added AS (
    INSERT INTO limit_counters (lane, account_id, limit_id, subject_id, user_id, window_end, spent, held, counted_since)
    SELECT p_lane, p_account_id, s.id, p_owner_id, s.user_id, window_end(s.period, v_at), s.spent, 0,
           CASE WHEN s.per_user AND EXISTS (SELECT 1 FROM sums o WHERE o.id = s.id AND o.user_id = '(other)')
             THEN 'infinity'::timestamptz ELSE '-infinity' END
    FROM sums s
    RETURNING user_id
  )
  SELECT count(*) INTO v_users FROM added a WHERE a.user_id <> '';
  IF v_users > 0 THEN
    PERFORM count_users(p_lane, p_account_id, v_users);
  END IF;
END
$$;
