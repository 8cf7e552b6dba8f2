-- A page of an account's keys, newest first, or the one key that p_id names. An empty account matches every account.
CREATE OR REPLACE FUNCTION view_keys(
  p_lane smallint, p_account_id text, p_id text, p_before text, p_limit integer, p_with_playground boolean DEFAULT true
) RETURNS SETOF key_view
  LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_ids text[];
BEGIN
  -- One statement per case: a single statement for all cases would read every key of the lane.
  IF p_id <> '' THEN
    v_ids := ARRAY[p_id];
  ELSIF p_before = '' THEN
    v_ids := ARRAY(SELECT k.id FROM keys k WHERE k.lane = p_lane AND k.account_id = p_account_id
                     AND (p_with_playground OR k.playground_of IS NULL)
                   ORDER BY k.id DESC LIMIT p_limit);
  ELSE
    v_ids := ARRAY(SELECT k.id FROM keys k WHERE k.lane = p_lane AND k.account_id = p_account_id AND k.id < p_before
                     AND (p_with_playground OR k.playground_of IS NULL)
                   ORDER BY k.id DESC LIMIT p_limit);
  END IF;
  RETURN QUERY
  SELECT k.id, k.account_id, k.name, k.plan, k.scopes,
         CASE WHEN k.revoked_at IS NOT NULL THEN 'revoked'
              WHEN k.expires_at <= clock_timestamp() THEN 'expired' ELSE 'active' END,
         effective_rpm(k.rate_limit_rpm, k.may_exceed_plan, p.rpm), k.visible_start, k.visible_end, k.created_at,
         k.revoked_at, k.expires_at, w.last_used_at, s.expires_at, array_to_string(k.models, ','),
         CASE WHEN k.is_limited THEN (
           SELECT json_agg(l)::text FROM count_limits(k.lane, k.account_id, '', ARRAY(
             SELECT o FROM limits_of_keys(k.lane, k.id, '{}', false, clock_timestamp()) o)) l) END,
         array_to_string(k.allowed_cidrs, ',')
  FROM keys k
  JOIN plans p ON p.name = k.plan
  LEFT JOIN key_minutes w ON w.lane = k.lane AND w.key_id = k.id
  LEFT JOIN previous_secrets s ON s.lane = k.lane AND s.key_id = k.id AND s.expires_at > clock_timestamp()
  WHERE k.lane = p_lane AND k.id = ANY (v_ids) AND (p_account_id = '' OR k.account_id = p_account_id)
  ORDER BY k.id DESC;
END
$$;
