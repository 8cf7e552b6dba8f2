-- The accounts of which a field starts with a text, in upper or lower case: those after (p_after, p_after_id) in the order of
-- the field and the id, at most p_limit; an empty p_after_id means from the start. p_field is external_id, email or name.
-- was_found: the text is the id of the account, or starts a field that is searched before this one.
CREATE OR REPLACE FUNCTION search_accounts(p_field text, p_search text, p_after text, p_after_id text, p_limit integer)
  RETURNS TABLE (
    term text, was_found boolean, id text, name text, plan text, balance_micros bigint, held_micros bigint,
    created_at timestamptz, suspended_at timestamptz, external_id text, email text, notes text,
    low_balance_micros bigint, owed_micros bigint, closed_at timestamptz, day_micros bigint, month_micros bigint
  )
  LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path FROM CURRENT
  SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off
  SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
DECLARE
  v_search constant text := lower(p_search);
  v_after constant text := CASE WHEN p_after_id = '' THEN v_search ELSE p_after END;
BEGIN
  RETURN QUERY
  WITH found AS (
    (SELECT lower(p.external_id) COLLATE "C" AS term, p.lane, p.account_id FROM account_profiles p
     WHERE p_field = 'external_id' AND p.external_id IS NOT NULL
       AND (lower(p.external_id) COLLATE "C", p.account_id COLLATE "C") > (v_after, p_after_id)
     ORDER BY lower(p.external_id) COLLATE "C", p.account_id COLLATE "C" LIMIT p_limit)
    UNION ALL
    (SELECT lower(p.email) COLLATE "C", p.lane, p.account_id FROM account_profiles p
     WHERE p_field = 'email' AND p.email <> ''
       AND (lower(p.email) COLLATE "C", p.account_id COLLATE "C") > (v_after, p_after_id)
     ORDER BY lower(p.email) COLLATE "C", p.account_id COLLATE "C" LIMIT p_limit)
    UNION ALL
    (SELECT lower(a.name) COLLATE "C", a.lane, a.id FROM accounts a
     WHERE p_field = 'name' AND (lower(a.name) COLLATE "C", a.id COLLATE "C") > (v_after, p_after_id)
     ORDER BY lower(a.name) COLLATE "C", a.id COLLATE "C" LIMIT p_limit)
  ), page AS MATERIALIZED (
    -- The texts that start with the search follow each other, so the first other text ends them.
    SELECT f.*, row_number() OVER () AS number FROM found f WHERE starts_with(f.term, v_search)
  )
  SELECT p.term::text, a.id = p_search OR (p_field <> 'external_id' AND starts_with(lower(a.external_id), v_search))
           OR (p_field = 'name' AND starts_with(lower(a.email), v_search)),
         a.id, a.name, a.plan, a.balance_micros, a.held_micros, a.created_at, a.suspended_at, a.external_id, a.email, a.notes,
         a.low_balance_micros, a.owed_micros, a.closed_at, a.day_micros, a.month_micros
  FROM page p JOIN account_views a ON a.lane = p.lane AND a.id = p.account_id ORDER BY p.number;
END
$$;
