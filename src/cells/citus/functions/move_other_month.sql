-- As for plain PostgreSQL, but calls wait while the rows are copied: Citus distributes only a table that is created as a partition, and
-- that is refused while rows of its month are in ledger_other_months.
CREATE OR REPLACE FUNCTION move_other_month() RETURNS TABLE (partition text, entries bigint)
  LANGUAGE plpgsql
  SET search_path FROM CURRENT
AS $$
DECLARE
  v_month integer;
  v_moved bigint;
BEGIN
  IF NOT EXISTS (SELECT FROM months_without_partition()) THEN
    RETURN;
  END IF;
  LOCK TABLE ledger_other_months IN ACCESS EXCLUSIVE MODE;
  SELECT m.month INTO v_month FROM months_without_partition() m LIMIT 1;
  IF NOT FOUND THEN
    RETURN;
  END IF;
  CREATE TEMPORARY TABLE moved_entries ON COMMIT DROP AS SELECT l.* FROM ledger_other_months l WHERE l.month = v_month;
  DELETE FROM ledger_other_months l WHERE l.month = v_month;
  GET DIAGNOSTICS entries = ROW_COUNT;
  partition := 'ledger_' || to_char(make_date(1970 + v_month / 12, v_month % 12 + 1, 1), 'YYYY_MM');
  EXECUTE format('CREATE TABLE %I PARTITION OF ledger FOR VALUES FROM (%s) TO (%s)', partition, v_month, v_month + 1);
  INSERT INTO ledger SELECT * FROM pg_temp.moved_entries;
  GET DIAGNOSTICS v_moved = ROW_COUNT;
  IF entries <> v_moved THEN
    RAISE EXCEPTION '% entries of % were moved, and % deleted', v_moved, partition, entries;
  END IF;
  RETURN NEXT;
END
$$;
