-- A page of accounts, newest first: all, or those with the text in their name, external id or e-mail, or with this id. An
-- empty p_before means the first page.
-- The settings keep deep pages on index scans regardless of the plan that PostgreSQL caches.
CREATE OR REPLACE FUNCTION list_accounts(p_search text, p_before text, p_limit integer) RETURNS SETOF account_views
  LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path FROM CURRENT
  SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off
AS $$
DECLARE
  v_search constant text := lower(p_search);
BEGIN
  -- Statements of their own, because no text is greater than every id in every collation.
  IF p_search = '' AND p_before = '' THEN
    RETURN QUERY SELECT * FROM account_views ORDER BY id DESC LIMIT p_limit;
  ELSIF p_search = '' THEN
    RETURN QUERY SELECT * FROM account_views WHERE id < p_before ORDER BY id DESC LIMIT p_limit;
  ELSE
    RETURN QUERY SELECT * FROM account_views a
      WHERE (p_before = '' OR a.id < p_before)
        AND (a.id = p_search OR strpos(lower(a.name), v_search) > 0 OR strpos(lower(a.external_id), v_search) > 0
          OR strpos(lower(a.email), v_search) > 0)
      ORDER BY a.id DESC LIMIT p_limit;
  END IF;
END
$$;
