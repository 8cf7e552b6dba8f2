-- Takes back the lanes of a split that was not confirmed, which no other cell can have claimed.
CREATE OR REPLACE FUNCTION return_lanes(p_id text) RETURNS void
  LANGUAGE plpgsql
  SET search_path FROM CURRENT
AS $$
DECLARE
  v_lanes constant smallint[] := set_split_state(p_id, 'released', 'returned');
BEGIN
  UPDATE lanes l SET is_owned = true, epoch = l.epoch + 1 WHERE l.lane = ANY (v_lanes);
  PERFORM unblock_queues(v_lanes);
END
$$;
