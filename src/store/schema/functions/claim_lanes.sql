-- Makes a promoted standby the cell of the lanes of a split, and of no others. Its copy of the split must be confirmed:
-- then it has everything that was written about the lanes, and the source cannot take them back.
CREATE OR REPLACE FUNCTION claim_lanes(p_id text) RETURNS void
  LANGUAGE plpgsql
  SET search_path FROM CURRENT
AS $$
DECLARE
  v_lanes constant smallint[] := set_split_state(p_id, 'confirmed', 'finished');
BEGIN
  UPDATE lanes l SET is_owned = l.lane = ANY (v_lanes),
    epoch = CASE WHEN l.lane = ANY (v_lanes) THEN l.epoch + 1 ELSE l.epoch END;
  PERFORM unblock_queues(v_lanes);
  UPDATE cell_name SET name = (SELECT s.target FROM cell_splits s WHERE s.id = p_id);
END
$$;
