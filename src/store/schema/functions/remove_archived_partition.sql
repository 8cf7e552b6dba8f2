-- Drops the partition whose last month this is, after its file was verified. In one transaction: from then on, the ledger
-- continues the archive. An error changes nothing.
CREATE OR REPLACE FUNCTION remove_archived_partition(p_month integer) RETURNS void
  LANGUAGE plpgsql
  SET search_path FROM CURRENT
  SET lock_timeout = '5s'
AS $$
DECLARE
  v_now constant timestamptz := clock_timestamp();
  v_partition record;
  v_archive ledger_archives;
  v_entries bigint;
  v_later bigint;
  v_elsewhere bigint;
BEGIN
  SELECT a.* INTO STRICT v_archive FROM ledger_archives a WHERE a.month = p_month AND a.removed_at IS NULL;
  SELECT p.* INTO STRICT v_partition FROM ledger_partitions() p WHERE p.end_month = p_month + 1;
  -- Reads go on, and so do writes of other months.
  EXECUTE format('LOCK TABLE %I IN SHARE ROW EXCLUSIVE MODE', v_partition.name);
  -- A call that began in the month and was charged after its end, or after the clock of a server was wrong.
  EXECUTE format('CREATE TEMPORARY TABLE later_entries ON COMMIT DROP AS SELECT l.* FROM %I l
    LEFT JOIN archived_ledger h ON h.lane = l.lane AND h.account_id = l.account_id AND h.month = %s
    WHERE l.seq > coalesce(h.seq, 0)', v_partition.name, p_month);
  GET DIAGNOSTICS v_later = ROW_COUNT;
  -- The same at the end of an earlier month, or calls of a server whose clock was ahead.
  EXECUTE format('CREATE TEMPORARY TABLE entries_elsewhere ON COMMIT DROP AS
    SELECT l.lane, l.account_id, l.seq, l.month FROM archived_ledger h
    JOIN ledger l ON l.lane = h.lane AND l.account_id = h.account_id AND l.seq <= h.seq
    WHERE h.month = %s AND (l.month < %s OR l.month >= %s)', p_month, coalesce(v_partition.first_month, 0),
    v_partition.end_month);
  GET DIAGNOSTICS v_elsewhere = ROW_COUNT;
  EXECUTE format('SELECT count(*) FROM %I', v_partition.name) INTO v_entries;
  IF v_entries - v_later + v_elsewhere <> v_archive.entries THEN
    RAISE EXCEPTION 'the ledger has % entries of the archive, its file has %', v_entries - v_later + v_elsewhere,
      v_archive.entries;
  END IF;
  -- Nothing waits here, so no call queues behind this lock, and there is no deadlock with a write of this month.
  FOR v_attempt IN 1..200 LOOP
    BEGIN
      LOCK TABLE ledger IN ACCESS EXCLUSIVE MODE NOWAIT;
      EXIT;
    EXCEPTION WHEN lock_not_available THEN
      IF v_attempt = 200 THEN
        RAISE;
      END IF;
      PERFORM pg_sleep(0.005);
    END;
  END LOOP;
  EXECUTE format('DROP TABLE %I', v_partition.name);
  INSERT INTO ledger SELECT * FROM pg_temp.later_entries;
  DELETE FROM ledger l USING pg_temp.entries_elsewhere e
    WHERE l.lane = e.lane AND l.account_id = e.account_id AND l.seq = e.seq AND l.month = e.month;
  UPDATE ledger_archives SET removed_at = v_now WHERE month = p_month;
END
$$;
