-- A page of accounts, newest first. An empty p_before means the first page.
-- The settings keep deep pages on index scans regardless of the plan that PostgreSQL caches.
CREATE OR REPLACE FUNCTION list_accounts(p_before text, p_limit integer) RETURNS SETOF account_views
  LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path FROM CURRENT
  SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off
AS $$
BEGIN
  -- Statements of their own, because no text is greater than every id in every collation.
  IF p_before = '' THEN
    RETURN QUERY SELECT * FROM account_views ORDER BY id DESC LIMIT p_limit;
  ELSE
    RETURN QUERY SELECT * FROM account_views WHERE id < p_before ORDER BY id DESC LIMIT p_limit;
  END IF;
END
$$;
