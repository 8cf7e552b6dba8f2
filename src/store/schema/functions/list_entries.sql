-- A page of an account's ledger, newest first. A p_before of 0 means the first page.
-- The numbers of entries have no gaps, so the page is known before it is read. Without an order and a limit below, each
-- partition is searched once, and the plan is made in a tenth of the time.
CREATE OR REPLACE FUNCTION list_entries(p_lane smallint, p_account_id text, p_before bigint, p_limit integer)
  RETURNS SETOF priced_ledger
  LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path FROM CURRENT
  -- Plans for all partitions are made once for a session.
  SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
DECLARE
  v_last constant bigint := (SELECT a.last_seq FROM accounts a WHERE a.lane = p_lane AND a.id = p_account_id);
  v_end constant bigint := CASE WHEN p_before BETWEEN 1 AND v_last THEN p_before ELSE v_last + 1 END;
BEGIN
  RETURN QUERY SELECT p.* FROM (
      SELECT l.* FROM priced_ledger l
      WHERE l.lane = p_lane AND l.account_id = p_account_id AND l.seq >= v_end - p_limit AND l.seq < v_end
      OFFSET 0
    ) p ORDER BY p.seq DESC;
END
$$;
