-- The limits of an owner, with what is counted for a user: of a key all that apply to its calls, of an account its own and those that its
-- plan gives to each of its keys. Both include the requests per minute and the active keys. Limits of a plan (lane 1024) have no counters of their
-- own, so those in the list of an account have counted nothing.
CREATE OR REPLACE FUNCTION view_limits(p_lane smallint, p_owner_id text, p_user text) RETURNS SETOF limit_view
  LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_now constant timestamptz := clock_timestamp();
  v_key_ids constant text[] := (SELECT k.ancestors || k.id FROM keys k WHERE k.lane = p_lane AND k.id = p_owner_id);
  v_account_id constant text := coalesce(
    (SELECT k.account_id FROM keys k WHERE k.lane = p_lane AND k.id = p_owner_id), p_owner_id);
  v_plan constant text := CASE p_lane WHEN 1024 THEN p_owner_id
    ELSE (SELECT a.plan FROM accounts a WHERE a.lane = p_lane AND a.id = p_owner_id) END;
BEGIN
  RETURN QUERY SELECT * FROM count_limits(p_lane, v_account_id,
    (SELECT user_digest(a.user_salt, p_user) FROM accounts a WHERE a.lane = p_lane AND a.id = v_account_id), ARRAY(
    SELECT l FROM limits_of_keys(p_lane, v_account_id, v_key_ids, true, v_now) l WHERE p_lane <> 1024
    UNION ALL
    SELECT (l.id, l.owner_id, p_owner_id, l.metric, l.period,
            CASE WHEN l.temporary_until > v_now THEN l.temporary_amount ELSE l.amount END, l.model, l.per_user)::applied_limit
    FROM limits l WHERE l.lane = 1024 AND l.owner_id = v_plan));
  RETURN QUERY
  SELECT '', CASE WHEN m.metric = 'requests' AND o.rate_limit_rpm IS NOT NULL THEN p_owner_id ELSE o.plan END, p_owner_id, m.metric,
         CASE m.metric WHEN 'requests' THEN 'minute' ELSE '' END, m.amount, '', false, NULL::bigint, NULL::timestamptz,
         m.amount, m.spent, m.held, CASE m.metric WHEN 'requests' THEN window_end('minute', v_now) END, NULL::timestamptz,
         false
  FROM (
    SELECT k.plan, k.rate_limit_rpm, k.may_exceed_plan FROM keys k WHERE k.lane = p_lane AND k.id = p_owner_id
    UNION ALL
    SELECT a.plan, NULL, false FROM accounts a WHERE a.lane = p_lane AND a.id = p_owner_id
  ) o
  JOIN plans p ON p.name = o.plan
  CROSS JOIN LATERAL (
    SELECT 'requests', effective_rpm(o.rate_limit_rpm, o.may_exceed_plan, p.rpm)::bigint, coalesce((
      SELECT w.used FROM key_minutes w WHERE w.lane = p_lane AND w.key_id = p_owner_id
        AND w.minute >= floor(extract(epoch FROM v_now) / 60)), 0)::bigint, 0::bigint
    UNION ALL
    SELECT 'active_keys', p.max_active_keys::bigint, 0::bigint, (
      SELECT count(*) FROM keys k WHERE k.lane = p_lane AND k.account_id = v_account_id AND k.plan = o.plan
        AND k.revoked_at IS NULL AND coalesce(k.expires_at, 'infinity') > v_now)
  ) m (metric, amount, spent, held);
END
$$;
