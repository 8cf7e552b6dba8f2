-- The archives, oldest first. The entries of one that is not removed are still in the ledger.
CREATE OR REPLACE FUNCTION list_archives()
  RETURNS TABLE (month integer, file text, sha256 bytea, entries bigint, removed_at timestamptz)
  LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path FROM CURRENT
AS $$
BEGIN
  RETURN QUERY SELECT a.month, a.file, a.sha256, a.entries, a.removed_at FROM ledger_archives a ORDER BY a.month;
END
$$;
