-- Refuses a lane that another cell owns. Every function that writes about an account checks its lane before its first write:
-- those that lock the lane do so with the lock, the others call this. So do reads that corrections and exports rely on: a cell
-- that gave up the lane has old rows.
CREATE OR REPLACE FUNCTION require_lane(p_lane smallint) RETURNS void
  LANGUAGE plpgsql
AS $$
BEGIN
  IF EXISTS (SELECT 1 FROM lanes l WHERE l.lane = p_lane AND NOT l.is_owned) THEN
    PERFORM raise_lane_moved();
  END IF;
END
$$;
