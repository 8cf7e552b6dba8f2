-- The lanes that have accounts, holds or ledger rows.
CREATE OR REPLACE FUNCTION lanes_in_use() RETURNS SETOF smallint
  LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path FROM CURRENT
  SET enable_seqscan = off
AS $$
BEGIN
  RETURN QUERY SELECT l.lane FROM lanes l
    WHERE EXISTS (SELECT 1 FROM accounts a WHERE a.lane = l.lane)
       OR EXISTS (SELECT 1 FROM holds h WHERE h.lane = l.lane)
       OR EXISTS (SELECT 1 FROM ledger e WHERE e.lane = l.lane)
    ORDER BY l.lane;
END
$$;
