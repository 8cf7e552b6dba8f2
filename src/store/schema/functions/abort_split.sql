-- Takes back the lanes of a split whose standby is lost. After a failover, the standby may have a confirmation that
-- this server lacks.
CREATE OR REPLACE FUNCTION abort_split(p_id text) RETURNS void
  LANGUAGE plpgsql
  SET search_path FROM CURRENT
AS $$
BEGIN
  PERFORM return_lanes(p_id);
  IF NOT EXISTS (SELECT 1 FROM cell_splits s WHERE s.id = p_id AND s.timeline = current_timeline()) THEN
    RAISE EXCEPTION 'the source was replaced in a failover after it released the lanes';
  END IF;
END
$$;
