-- Creates the partition of the first month that has rows in ledger_other_months instead, and moves them there. Returns nothing if
-- there is no such month. Only the owner may execute it. The caller sets lock_timeout: reads of the ledger have locks that a new
-- partition needs, and others queue behind it.
CREATE OR REPLACE FUNCTION move_other_month() RETURNS TABLE (partition text, entries bigint)
  LANGUAGE plpgsql
  SET search_path FROM CURRENT
AS $$
DECLARE
  v_month integer;
  v_copied bigint;
  v_late bigint;
BEGIN
  IF NOT EXISTS (SELECT FROM months_without_partition()) THEN
    RETURN;
  END IF;
  -- Excludes the removal of archived entries, and others who create partitions, but no call.
  LOCK TABLE ONLY ledger IN SHARE UPDATE EXCLUSIVE MODE;
  SELECT m.month INTO v_month FROM months_without_partition() m LIMIT 1;
  IF NOT FOUND THEN
    RETURN;
  END IF;
  partition := 'ledger_' || to_char(make_date(1970 + v_month / 12, v_month % 12 + 1, 1), 'YYYY_MM');
  -- With the check, ATTACH PARTITION does not read the rows.
  EXECUTE format('CREATE TABLE %I (LIKE ledger INCLUDING CONSTRAINTS INCLUDING INDEXES,
    CONSTRAINT one_month CHECK (month IS NOT NULL AND month = %s))', partition, v_month);
  -- Calls continue meanwhile. Entries never change, so only those that were added since are copied under the lock.
  EXECUTE format('INSERT INTO %I SELECT l.* FROM ledger_other_months l WHERE l.month = %s', partition, v_month);
  GET DIAGNOSTICS v_copied = ROW_COUNT;
  LOCK TABLE ledger_other_months IN ACCESS EXCLUSIVE MODE;
  EXECUTE format('INSERT INTO %1$I SELECT l.* FROM ledger_other_months l WHERE l.month = %2$s
    AND NOT EXISTS (SELECT 1 FROM %1$I p WHERE p.lane = l.lane AND p.id = l.id)', partition, v_month);
  GET DIAGNOSTICS v_late = ROW_COUNT;
  DELETE FROM ledger_other_months l WHERE l.month = v_month;
  GET DIAGNOSTICS entries = ROW_COUNT;
  IF entries <> v_copied + v_late THEN
    RAISE EXCEPTION '% entries of % were copied, and % deleted', v_copied + v_late, partition, entries;
  END IF;
  EXECUTE format('ALTER TABLE ledger ATTACH PARTITION %I FOR VALUES FROM (%s) TO (%s)', partition, v_month, v_month + 1);
  EXECUTE format('ALTER TABLE %I DROP CONSTRAINT one_month', partition);
  RETURN NEXT;
END
$$;
