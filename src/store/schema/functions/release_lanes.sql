-- Gives up the lanes of a split. From the commit on, new statements about them are refused; those that began before may still
-- write.
CREATE OR REPLACE FUNCTION release_lanes(p_id text) RETURNS void
  LANGUAGE plpgsql
  SET search_path FROM CURRENT
  SET lock_timeout = '1s'
AS $$
DECLARE
  v_lanes constant smallint[] := set_split_state(p_id, 'begun', 'released');
  v_released integer;
BEGIN
  UPDATE cell_splits s SET timeline = current_timeline() WHERE s.id = p_id;
  -- In ascending order, as all statements lock lanes.
  PERFORM 1 FROM lanes l WHERE l.lane = ANY (v_lanes) ORDER BY l.lane FOR UPDATE;
  UPDATE lanes l SET is_owned = false, epoch = l.epoch + 1 WHERE l.lane = ANY (v_lanes) AND l.is_owned;
  GET DIAGNOSTICS v_released = ROW_COUNT;
  IF v_released <> cardinality(v_lanes) THEN
    RAISE EXCEPTION 'the cell owns only % of the % lanes', v_released, cardinality(v_lanes);
  END IF;
END
$$;
