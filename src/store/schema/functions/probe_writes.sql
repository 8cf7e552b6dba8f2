-- Fails if the database accepts no writes, and returns its clock. A full disk refuses only writes that need space, so a probe adds a
-- page. A row of the last second, which any process of any server may have written, counts as well. Rows are counted instead of bytes,
-- because Citus keeps them in another table.
CREATE OR REPLACE FUNCTION probe_writes() RETURNS TABLE (clock timestamptz)
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  c_now constant timestamptz := clock_timestamp();
  v_rows integer;
BEGIN
  IF NOT EXISTS (SELECT 1 FROM write_probes p WHERE p.at > c_now - interval '900 milliseconds' AND p.at <= c_now) THEN
    v_rows := (SELECT count(*) FROM write_probes);
    IF v_rows >= 64 THEN
      BEGIN
        -- A dump reads the table for as long as it runs.
        LOCK TABLE write_probes IN ACCESS EXCLUSIVE MODE NOWAIT;
        TRUNCATE write_probes;
        v_rows := 0;
      EXCEPTION WHEN lock_not_available THEN
        NULL;
      END;
    END IF;
    IF v_rows < 3600 THEN
      INSERT INTO write_probes VALUES (c_now, repeat('x', 450));
    ELSE
      -- A dump has run for an hour: the table must not grow further.
      UPDATE write_probes p SET at = c_now WHERE p.at = (SELECT min(o.at) FROM write_probes o);
    END IF;
  END IF;
  clock := clock_timestamp();
  RETURN NEXT;
END
$$;
