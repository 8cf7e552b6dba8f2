-- The partitions of the ledger, oldest first, whose months ended at least two days ago: no call that began in them runs, and
-- the replies that are kept for their idempotency keys expired.
CREATE OR REPLACE FUNCTION archivable_partitions() RETURNS TABLE (name text, last_month integer)
  LANGUAGE plpgsql STABLE
  SET search_path FROM CURRENT
AS $$
DECLARE
  c_day constant timestamp := (clock_timestamp() AT TIME ZONE 'UTC') - interval '2 days';
BEGIN
  RETURN QUERY SELECT p.name, p.end_month - 1 FROM ledger_partitions() p
    WHERE p.end_month <= (extract(year FROM c_day) - 1970) * 12 + extract(month FROM c_day) - 1
    ORDER BY p.end_month;
END
$$;
