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
           THEN c.counted_since END
  FROM unnest(p_applied) a
  JOIN limits d ON d.lane IN (p_lane, 1024) AND d.id = a.id
  LEFT JOIN limit_counters c ON c.lane = p_lane AND c.account_id = p_account_id AND c.limit_id = a.id
    AND c.subject_id = a.subject_id AND c.user_id = CASE WHEN d.per_user THEN p_user_id ELSE '' END
  ORDER BY a.owner_id, d.metric, d.period, d.model, d.per_user;
END
$$;
