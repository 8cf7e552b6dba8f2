-- A page of a list is found by its index alone, however deep it is and whatever plan PostgreSQL keeps. One condition for
-- all pages ("p_before = 0 OR seq < p_before") is no bound for an index in a plan that is kept: PostgreSQL may then walk
-- through everything newer than the page. In an account of five million rows that took seconds.

-- Newest first. p_before 0 stands for the newest.
CREATE OR REPLACE FUNCTION vx.list_entries(p_lane smallint, p_account_id text, p_before bigint, p_limit integer)
  RETURNS SETOF vx.ledger
  LANGUAGE sql STABLE SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp
  SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off
AS $$
  SELECT * FROM vx.ledger
  WHERE lane = p_lane AND account_id = p_account_id
    AND seq < CASE p_before WHEN 0 THEN 9223372036854775807 ELSE p_before END
  ORDER BY seq DESC LIMIT p_limit
$$;

-- Newest first. p_before '' stands for the newest.
CREATE OR REPLACE FUNCTION vx.list_accounts(p_before text, p_limit integer) RETURNS SETOF vx.accounts
  LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp
  SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off
AS $$
BEGIN
  -- A statement for each case: no text is greater than every id under every collation.
  IF p_before = '' THEN
    RETURN QUERY SELECT * FROM vx.accounts ORDER BY id DESC LIMIT p_limit;
  ELSE
    RETURN QUERY SELECT * FROM vx.accounts WHERE id < p_before ORDER BY id DESC LIMIT p_limit;
  END IF;
END
$$;
