-- The keys of all accounts whose name contains a text after its start, in upper or lower case: those after (p_after, p_after_id) in
-- the order of the name and the id, at most p_limit, among the next p_rows keys in this order. If it reads so many, the last one is
-- returned too, with is_match = false if it does not match, so that the caller can continue after it.
CREATE OR REPLACE FUNCTION search_key_names(p_search text, p_after text, p_after_id text, p_rows integer, p_limit integer)
  RETURNS TABLE (
    list integer, sorted_name text, is_match boolean, account_name text, id text, account_id text, name text, plan text,
    scopes smallint, state text, rpm integer, visible_start text, visible_end text, created_at timestamptz,
    revoked_at timestamptz, expires_at timestamptz, last_used_at timestamptz,
    previous_expires_at timestamptz, models text, limits text,
    allowed_cidrs text
  )
  LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path FROM CURRENT
  SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off
AS $$
DECLARE
  v_search constant text := lower(p_search);
BEGIN
  RETURN QUERY
  WITH page AS MATERIALIZED (
    SELECT r.sorted_name, r.lane, r.id, strpos(r.sorted_name, v_search) > 1 AS is_match, r.number
    FROM (
      SELECT n.*, row_number() OVER () AS number FROM (
        SELECT lower(k.name) COLLATE "C" AS sorted_name, k.lane, k.id FROM keys k
        WHERE (lower(k.name) COLLATE "C", k.id COLLATE "C") > (p_after, p_after_id)
        ORDER BY lower(k.name) COLLATE "C", k.id COLLATE "C" LIMIT p_rows
      ) n
    ) r WHERE strpos(r.sorted_name, v_search) > 1 OR r.number = p_rows LIMIT p_limit
  )
  SELECT 3, p.sorted_name::text, p.is_match, a.name, v.*
  FROM page p
  CROSS JOIN LATERAL keys_by_id(p.lane, ARRAY[p.id]) v
  JOIN accounts a ON a.lane = p.lane AND a.id = v.account_id
  ORDER BY p.number;
END
$$;
