-- Writes counters that do not exist or have old definitions, and returns all of them. Others keep their place. The caller holds the
-- lock of the lane.
CREATE OR REPLACE FUNCTION align_counters(
  p_lane smallint, p_account_id text, p_names counter_name[], p_version bigint, p_plans_version bigint, p_at timestamptz
) RETURNS limit_counter[]
  LANGUAGE plpgsql
AS $$
DECLARE
  v_users integer;
BEGIN
  WITH old AS MATERIALIZED (
    SELECT n.subject_id, n.plan, n.user_id, CASE n.plan WHEN '' THEN p_version ELSE p_plans_version END AS version,
           c.subject_id IS NULL AS is_new
    FROM unnest(p_names) AS n (subject_id, plan, user_id)
    LEFT JOIN limit_counters c ON c.lane = p_lane AND c.account_id = p_account_id AND c.subject_id = n.subject_id
      AND c.plan = n.plan AND c.user_id = n.user_id
    WHERE c.subject_id IS NULL OR c.version <> CASE n.plan WHEN '' THEN p_version ELSE p_plans_version END
      OR c.valid_until <= p_at
  ), written AS (
    INSERT INTO limit_counters AS c (lane, account_id, subject_id, plan, user_id, version, valid_until, expires_at, limit_ids, metrics,
      periods, models, per_users, amounts, window_ends, spent, held, counted_since)
    SELECT p_lane, p_account_id, o.subject_id, o.plan, o.user_id, o.version, a.valid_until,
           coalesce((SELECT max(e) FROM unnest((a.counter).window_ends) e), '-infinity'), (a.counter).limit_ids, (a.counter).metrics,
           (a.counter).periods, (a.counter).models, (a.counter).per_users, (a.counter).amounts, (a.counter).window_ends,
           (a.counter).spent, (a.counter).held, (a.counter).counted_since
    FROM old o
    CROSS JOIN LATERAL aligned_counters(p_lane, p_account_id,
      ARRAY[ROW(o.subject_id, o.plan, o.user_id)::counter_name], p_at) a
    ON CONFLICT ON CONSTRAINT limit_counters_pkey DO UPDATE SET
      version = excluded.version, valid_until = excluded.valid_until, expires_at = excluded.expires_at,
      limit_ids = excluded.limit_ids, metrics = excluded.metrics, periods = excluded.periods, models = excluded.models,
      per_users = excluded.per_users, amounts = excluded.amounts, window_ends = excluded.window_ends, spent = excluded.spent,
      held = excluded.held, counted_since = excluded.counted_since
  )
  SELECT count(*) INTO v_users FROM old o WHERE o.is_new AND o.user_id <> '';
  IF v_users > 0 THEN
    PERFORM count_users(p_lane, p_account_id, v_users);
  END IF;
  RETURN ARRAY(SELECT a.counter FROM aligned_counters(p_lane, p_account_id, p_names, p_at) a);
END
$$;
