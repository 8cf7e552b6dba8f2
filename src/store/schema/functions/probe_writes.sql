-- Fails if the database accepts no writes, and returns its clock. A full disk refuses only writes that need space, so a probe adds a
-- page. A row of the last second, which any process of any server may have written, counts as well.
CREATE OR REPLACE FUNCTION probe_writes() RETURNS TABLE (clock timestamptz)
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  c_now constant timestamptz := clock_timestamp();
  c_max_bytes constant integer := 524288;
BEGIN
  IF NOT EXISTS (SELECT 1 FROM write_probes p WHERE p.at > c_now - interval '900 milliseconds' AND p.at <= c_now) THEN
    IF pg_relation_size('write_probes') >= c_max_bytes THEN
      BEGIN
        -- A dump reads the table for as long as it runs.
        LOCK TABLE write_probes IN ACCESS EXCLUSIVE MODE NOWAIT;
        TRUNCATE write_probes;
      EXCEPTION WHEN lock_not_available THEN
        NULL;
      END;
    END IF;
    INSERT INTO write_probes VALUES (c_now, repeat('x', 450));
  END IF;
  clock := clock_timestamp();
  RETURN NEXT;
END
$$;
