-- The keys with these ids, newest first, as customers and operators see them. Changes return their key with it: PostgreSQL inlines it.
CREATE OR REPLACE FUNCTION keys_by_id(p_lane smallint, p_ids text[]) RETURNS SETOF key_view
  LANGUAGE sql STABLE
AS $$
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
  WHERE k.lane = p_lane AND k.id = ANY (p_ids)
  ORDER BY k.id DESC
$$;
