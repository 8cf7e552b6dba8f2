-- The active keys that are older than p_days and were not used for so long, the oldest first: those after p_after, at most p_limit, among
-- the next p_rows keys. If it reads so many, the last one is returned too, with is_match = false if it does not match, so that the
-- caller can continue after it.
CREATE OR REPLACE FUNCTION unused_keys(p_days integer, p_after text, p_rows integer, p_limit integer)
  RETURNS TABLE (
    is_match boolean, account_name text, id text, account_id text, name text, plan text,
    scopes smallint, state text, rpm integer, visible_start text, visible_end text, created_at timestamptz,
    revoked_at timestamptz, expires_at timestamptz, last_used_at timestamptz,
    previous_expires_at timestamptz, models text, limits text,
    allowed_cidrs text
  )
  LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path FROM CURRENT
  SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off
  SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
DECLARE
  v_now constant timestamptz := clock_timestamp();
  v_before constant timestamptz := v_now - p_days * interval '1 day';
BEGIN
  RETURN QUERY
  WITH page AS MATERIALIZED (
    SELECT r.lane, r.id, r.is_match, r.number FROM (
      SELECT n.lane, n.id, row_number() OVER () AS number,
             n.created_at < v_before AND n.revoked_at IS NULL AND coalesce(n.expires_at, 'infinity') > v_now
               AND coalesce(w.last_used_at < v_before, true) AS is_match
      FROM (
        SELECT k.* FROM keys k WHERE k.id COLLATE "C" > p_after ORDER BY k.id COLLATE "C" LIMIT p_rows
      ) n
      LEFT JOIN key_minutes w ON w.lane = n.lane AND w.key_id = n.id
    ) r WHERE r.is_match OR r.number = p_rows LIMIT p_limit
  )
  SELECT p.is_match, a.name, v.*
  FROM page p
  CROSS JOIN LATERAL keys_by_id(p.lane, ARRAY[p.id]) v
  JOIN accounts a ON a.lane = p.lane AND a.id = v.account_id
  ORDER BY p.number;
END
$$;
