-- The partitions of the ledger and their months since January 1970: from first_month, or without a lower bound, until before
-- end_month. Rows of other months are in ledger_other_months.
CREATE OR REPLACE FUNCTION ledger_partitions() RETURNS TABLE (name text, first_month integer, end_month integer)
  LANGUAGE plpgsql STABLE
  SET search_path FROM CURRENT
AS $$
BEGIN
  RETURN QUERY
  SELECT c.relname::text, substring(b.bound FROM 'FROM \(([0-9]+)\)')::integer,
         substring(b.bound FROM 'TO \(([0-9]+)\)')::integer
  FROM pg_inherits i
  JOIN pg_class c ON c.oid = i.inhrelid
  CROSS JOIN LATERAL pg_get_expr(c.relpartbound, c.oid) AS b (bound)
  WHERE i.inhparent = 'ledger'::regclass AND b.bound <> 'DEFAULT'
  ORDER BY 3;
END
$$;
