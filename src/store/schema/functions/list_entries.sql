-- A page of an account's ledger, newest first. A p_before of 0 means the first page.
-- One range condition serves all pages: with "p_before = 0 OR seq < p_before" a cached plan would read every newer row.
CREATE OR REPLACE FUNCTION list_entries(p_lane smallint, p_account_id text, p_before bigint, p_limit integer)
  RETURNS SETOF priced_ledger
  LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path FROM CURRENT
  SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off
AS $$
BEGIN
  RETURN QUERY SELECT l.* FROM priced_ledger l
    WHERE l.lane = p_lane AND l.account_id = p_account_id
      AND l.seq < CASE p_before WHEN 0 THEN 9223372036854775807 ELSE p_before END
    ORDER BY l.seq DESC LIMIT p_limit;
END
$$;
