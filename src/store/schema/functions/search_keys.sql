-- A page of the keys of all accounts: the one with the id, those with the visible characters (an empty end matches
-- all), those whose name starts with the text, or all if every text is empty. Keys of the same visible characters and
-- all keys are newest first; keys found by their name follow, in its order. p_after is the position of the last key of
-- the previous page, as JSON: list, sorted name and id; 0 is the list of the first page.
CREATE OR REPLACE FUNCTION search_keys(
  p_id text, p_start text, p_end text, p_name text, p_after text, p_limit integer
) RETURNS TABLE (
    list integer, sorted_name text, account_name text, id text, account_id text, name text, plan text, scopes smallint, state text,
    rpm integer, visible_start text, visible_end text, created_at timestamptz, revoked_at timestamptz,
    expires_at timestamptz, last_used_at timestamptz,
    previous_expires_at timestamptz, models text, limits text,
    allowed_cidrs text
  )
  LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path FROM CURRENT
  SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off
AS $$
DECLARE
  v_after constant json := p_after;
  -- 1: by id, by visible characters or all; 2: by name.
  v_list constant integer := (v_after ->> 0)::integer;
  v_name constant text := lower(p_name);
  v_is_all constant boolean := p_id = '' AND p_start = '' AND p_name = '';
  -- Greater than every id in the order of bytes.
  v_before constant text := CASE WHEN v_list = 1 THEN v_after ->> 2 ELSE '~' END;
  v_after_name constant text := CASE WHEN v_list = 2 THEN v_after ->> 1 ELSE v_name END;
  v_after_id constant text := CASE WHEN v_list = 2 THEN v_after ->> 2 ELSE '' END;
BEGIN
  RETURN QUERY
  WITH found AS (
    (SELECT 1 AS list, '' AS sorted_name, k.lane, k.id FROM keys k
     WHERE p_id <> '' AND v_list = 0 AND k.lane = lane_of(p_id) AND k.id = p_id)
    UNION ALL
    (SELECT 1, '', k.lane, k.id FROM keys k
     WHERE p_start <> '' AND v_list <= 1 AND k.visible_start = p_start AND p_end IN ('', k.visible_end)
       AND k.id COLLATE "C" < v_before
     ORDER BY k.id COLLATE "C" DESC LIMIT p_limit)
    UNION ALL
    (SELECT 1, '', k.lane, k.id FROM keys k
     WHERE v_is_all AND k.id COLLATE "C" < v_before ORDER BY k.id COLLATE "C" DESC LIMIT p_limit)
    UNION ALL
    -- The names that start with the text follow each other, so the first other name ends them.
    (SELECT 2, n.sorted_name, n.lane, n.id FROM (
       SELECT lower(k.name) COLLATE "C" AS sorted_name, k.lane, k.id FROM keys k
       WHERE p_name <> '' AND v_list <= 2 AND (lower(k.name) COLLATE "C", k.id COLLATE "C") > (v_after_name, v_after_id)
       ORDER BY lower(k.name) COLLATE "C", k.id COLLATE "C" LIMIT p_limit
     ) n WHERE starts_with(n.sorted_name, v_name))
  ), page AS MATERIALIZED (
    SELECT f.*, row_number() OVER () AS number FROM found f LIMIT p_limit
  )
  SELECT p.list, p.sorted_name::text, a.name, v.*
  FROM page p
  CROSS JOIN LATERAL keys_by_id(p.lane, ARRAY[p.id]) v
  JOIN accounts a ON a.lane = p.lane AND a.id = v.account_id
  ORDER BY p.number;
END
$$;
