-- The accounts whose name contains a text after its start, in upper or lower case: those after (p_after, p_after_id) in the order
-- of the name and the id, at most p_limit, among the next p_rows accounts in this order. If it reads so many, the last one is
-- returned too, with is_match = false if it does not match, so that the caller can continue after it. was_found: as in
-- search_accounts, with the e-mail address.
CREATE OR REPLACE FUNCTION search_names(p_search text, p_after text, p_after_id text, p_rows integer, p_limit integer)
  RETURNS TABLE (
    term text, is_match boolean, was_found boolean, id text, name text, plan text, balance_micros bigint, held_micros bigint,
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
BEGIN
  RETURN QUERY
  WITH page AS MATERIALIZED (
    SELECT r.term, r.lane, r.account_id, strpos(r.term, v_search) > 1 AS is_match, r.number
    FROM (
      SELECT n.*, row_number() OVER () AS number FROM (
        SELECT lower(a.name) COLLATE "C" AS term, a.lane, a.id AS account_id FROM accounts a
        WHERE (lower(a.name) COLLATE "C", a.id COLLATE "C") > (p_after, p_after_id)
        ORDER BY lower(a.name) COLLATE "C", a.id COLLATE "C" LIMIT p_rows
      ) n
    ) r WHERE strpos(r.term, v_search) > 1 OR r.number = p_rows LIMIT p_limit
  )
  SELECT p.term::text, p.is_match, a.id = p_search OR starts_with(lower(a.external_id), v_search) IS TRUE
           OR starts_with(lower(a.email), v_search) IS TRUE,
         a.id, a.name, a.plan, a.balance_micros, a.held_micros, a.created_at, a.suspended_at, a.external_id, a.email, a.notes,
         a.low_balance_micros, a.owed_micros, a.closed_at, a.day_micros, a.month_micros
  FROM page p JOIN account_views a ON a.lane = p.lane AND a.id = p.account_id ORDER BY p.number;
END
$$;
