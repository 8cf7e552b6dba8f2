-- Creates the partitions of this month and of the three months ahead that do not exist. A month that has rows in
-- ledger_other_months keeps them there until move_other_month moves them.
CREATE OR REPLACE FUNCTION create_ledger_partitions() RETURNS TABLE (created text)
  LANGUAGE plpgsql SECURITY DEFINER
  SET search_path FROM CURRENT
  -- Reads of the ledger have locks that a new partition needs, and others queue behind it.
  SET lock_timeout = '1s'
AS $$
DECLARE
  c_today constant timestamp := clock_timestamp() AT TIME ZONE 'UTC';
  c_month constant integer := (extract(year FROM c_today) - 1970) * 12 + extract(month FROM c_today) - 1;
BEGIN
  FOR v_month IN c_month .. c_month + 3 LOOP
    CONTINUE WHEN EXISTS (SELECT 1 FROM ledger_partitions() p
        WHERE v_month >= coalesce(p.first_month, v_month) AND v_month < p.end_month)
      OR EXISTS (SELECT 1 FROM ledger_other_months l WHERE l.month = v_month);
    created := 'ledger_' || to_char(make_date(1970 + v_month / 12, v_month % 12 + 1, 1), 'YYYY_MM');
    BEGIN
      EXECUTE format('CREATE TABLE %I (LIKE ledger INCLUDING CONSTRAINTS INCLUDING INDEXES)', created);
      EXECUTE format('ALTER TABLE ledger ATTACH PARTITION %I FOR VALUES FROM (%s) TO (%s)', created, v_month, v_month + 1);
      RETURN NEXT;
    EXCEPTION WHEN duplicate_table OR unique_violation THEN
      -- Another server creates it.
      NULL;
    END;
  END LOOP;
END
$$;
