-- Deletes what interrupted archives wrote here. Their entries are still in the ledger.
CREATE OR REPLACE FUNCTION forget_unfinished_archives() RETURNS void
  LANGUAGE plpgsql
  SET search_path FROM CURRENT
AS $$
BEGIN
  DELETE FROM ledger_archives a WHERE a.removed_at IS NULL;
  DELETE FROM archived_ledger h WHERE h.month > coalesce((SELECT max(a.month) FROM ledger_archives a), -1);
END
$$;
