-- Writes counters that do not exist or have old definitions, and returns all of them. Others keep their place. The caller holds the
-- lock of the lane.
CREATE OR REPLACE FUNCTION align_counters(
  p_lane smallint, p_account_id text, p_names counter_name[], p_version bigint, p_plans_version bigint, p_at timestamptz
) RETURNS call_counters
  LANGUAGE plpgsql
AS $$
DECLARE
  v_users integer;
  v_counters call_counters;
BEGIN
  WITH old AS MATERIALIZED (
    SELECT n.subject_id, n.plan, n.user_id, v.version, c.version IS NULL AS is_new
    FROM unnest(p_names) AS n (subject_id, plan, user_id)
    CROSS JOIN LATERAL (SELECT CASE n.plan WHEN '' THEN p_version ELSE p_plans_version END AS version) v
    -- The limit keeps a look-up by key.
    LEFT JOIN LATERAL (SELECT i.version, i.valid_until FROM limit_counters i
      WHERE i.lane = p_lane AND i.account_id = p_account_id AND i.subject_id = n.subject_id AND i.plan = n.plan
        AND i.user_id = n.user_id LIMIT 1) c ON true
    WHERE c.version IS DISTINCT FROM v.version OR c.valid_until <= p_at
  ), written AS (
    INSERT INTO limit_counters AS c (lane, account_id, subject_id, plan, user_id, version, valid_until, expires_at, counter)
    SELECT p_lane, p_account_id, o.subject_id, o.plan, o.user_id, o.version, a.valid_until, last_window_end(a.counter), a.counter
    FROM old o
    CROSS JOIN LATERAL aligned_counters(p_lane, p_account_id,
      ARRAY[ROW(o.subject_id, o.plan, o.user_id)::counter_name], p_at) a
    ON CONFLICT ON CONSTRAINT limit_counters_pkey DO UPDATE SET
      version = excluded.version, valid_until = excluded.valid_until, expires_at = excluded.expires_at,
      counter = excluded.counter
  )
  SELECT count(*) INTO v_users FROM old o WHERE o.is_new AND o.user_id <> '';
  IF v_users > 0 THEN
    PERFORM count_users(p_lane, p_account_id, v_users);
  END IF;
  SELECT array_agg(a.place), array_agg(a.counter), true INTO v_counters
    FROM aligned_counters(p_lane, p_account_id, p_names, p_at) a;
  RETURN v_counters;
END
$$;
