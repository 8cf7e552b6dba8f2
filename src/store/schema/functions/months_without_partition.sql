-- The months of ledger_other_months that should have a partition. Those before the end of the last archive should not: their
-- rows are in the next archive.
CREATE OR REPLACE FUNCTION months_without_partition() RETURNS TABLE (month integer, entries bigint)
  LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path FROM CURRENT
AS $$
DECLARE
  v_archived constant integer := (SELECT max(a.month) FROM ledger_archives a WHERE a.removed_at IS NOT NULL);
BEGIN
  RETURN QUERY SELECT l.month, count(*) FROM ledger_other_months l
    WHERE l.month > coalesce(v_archived, -1) GROUP BY l.month ORDER BY l.month;
END
$$;
