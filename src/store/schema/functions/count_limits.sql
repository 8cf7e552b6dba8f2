-- The limits that apply, with the counted amounts of one user of the account.
CREATE OR REPLACE FUNCTION count_limits(p_lane smallint, p_account_id text, p_user_id text, p_applied applied_limit[])
  RETURNS SETOF limit_view
  LANGUAGE plpgsql STABLE ROWS 5
AS $$
DECLARE
  v_now constant timestamptz := clock_timestamp();
BEGIN
  RETURN QUERY
  SELECT d.id, a.owner_id, a.subject_id, d.metric, d.period, d.amount, d.model, d.per_user, d.temporary_amount,
         d.temporary_until, a.amount, CASE WHEN c.window_end > v_now THEN c.spent ELSE 0 END, coalesce(c.held, 0),
         nullif(window_end(d.period, v_now), 'infinity'),
         CASE WHEN c.window_end > v_now AND isfinite(c.counted_since) AND c.counted_since > window_start(d.period, v_now)
           THEN c.counted_since END, d.is_of_operator
  FROM unnest(p_applied) a
  JOIN limits d ON d.lane IN (p_lane, 1024) AND d.id = a.id
  LEFT JOIN LATERAL (
    SELECT x.* FROM limit_counters i
    CROSS JOIN LATERAL unnest((i.counter).limit_ids, (i.counter).window_ends, (i.counter).spent, (i.counter).held, (i.counter).counted_since)
      AS x (limit_id, window_end, spent, held, counted_since)
    WHERE i.lane = p_lane AND i.account_id = p_account_id AND i.subject_id = a.subject_id
      AND i.plan = CASE d.lane WHEN 1024 THEN d.owner_id ELSE '' END
      AND i.user_id = CASE WHEN d.per_user THEN p_user_id ELSE '' END AND x.limit_id = a.id
  ) c ON true
  ORDER BY a.owner_id, d.metric, d.period, d.model, d.per_user;
END
$$;
