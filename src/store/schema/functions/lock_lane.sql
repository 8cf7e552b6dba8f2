-- Locks a lane until the end of the transaction. Raises an error if another cell owns the lane.
CREATE OR REPLACE FUNCTION lock_lane(p_lane smallint) RETURNS void
  LANGUAGE plpgsql
AS $$
BEGIN
  PERFORM 1 FROM lanes WHERE lane = p_lane AND is_owned FOR UPDATE;
  IF NOT FOUND THEN
    PERFORM raise_lane_moved();
  END IF;
END
$$;
