-- The limits of an owner, with what is counted for a user: of a key all that apply to its calls, the requests per minute and the active
-- keys included, of an account its own. Limits of a plan (lane 1024) have no counters of their own.
CREATE OR REPLACE FUNCTION view_limits(p_lane smallint, p_owner_id text, p_user text) RETURNS SETOF limit_view
  LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_now constant timestamptz := clock_timestamp();
  v_key_ids constant text[] := (SELECT k.ancestors || k.id FROM keys k WHERE k.lane = p_lane AND k.id = p_owner_id);
  v_account_id constant text := coalesce(
    (SELECT k.account_id FROM keys k WHERE k.lane = p_lane AND k.id = p_owner_id), p_owner_id);
BEGIN
  RETURN QUERY SELECT * FROM count_limits(p_lane, v_account_id,
    (SELECT user_digest(a.user_salt, p_user) FROM accounts a WHERE a.lane = p_lane AND a.id = v_account_id), ARRAY(
    SELECT l FROM limits_of_keys(p_lane, v_account_id, v_key_ids, true, v_now) l WHERE p_lane <> 1024
    UNION ALL
    SELECT (l.id, l.owner_id, l.owner_id, l.metric, l.period,
            CASE WHEN l.temporary_until > v_now THEN l.temporary_amount ELSE l.amount END, l.model, l.per_user)::applied_limit
    FROM limits l WHERE p_lane = 1024 AND l.lane = 1024 AND l.owner_id = p_owner_id));
  RETURN QUERY
  SELECT '', CASE WHEN m.metric = 'requests' AND k.rate_limit_rpm IS NOT NULL THEN k.id ELSE k.plan END, k.id, m.metric,
         CASE m.metric WHEN 'requests' THEN 'minute' ELSE '' END, m.amount, '', false, NULL::bigint, NULL::timestamptz,
         m.amount, m.spent, m.held, CASE m.metric WHEN 'requests' THEN window_end('minute', v_now) END, NULL::timestamptz,
         false
  FROM keys k
  JOIN plans p ON p.name = k.plan
  CROSS JOIN LATERAL (
    SELECT 'requests', effective_rpm(k.rate_limit_rpm, k.may_exceed_plan, p.rpm)::bigint, coalesce((
      SELECT w.used FROM key_minutes w WHERE w.lane = p_lane AND w.key_id = k.id
        AND w.minute >= floor(extract(epoch FROM v_now) / 60)), 0)::bigint, 0::bigint
    UNION ALL
    SELECT 'active_keys', p.max_active_keys::bigint, 0::bigint, (
      SELECT count(*) FROM keys o WHERE o.lane = p_lane AND o.account_id = k.account_id AND o.plan = k.plan
        AND o.revoked_at IS NULL AND coalesce(o.expires_at, 'infinity') > v_now)
  ) m (metric, amount, spent, held)
  WHERE k.lane = p_lane AND k.id = p_owner_id;
END
$$;
