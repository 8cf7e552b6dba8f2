-- Changes the state of a split and returns its lanes. Another state than p_from means that another command changed it.
CREATE OR REPLACE FUNCTION set_split_state(p_id text, p_from text, p_to text) RETURNS smallint[]
  LANGUAGE plpgsql
  SET search_path FROM CURRENT
AS $$
DECLARE
  v_now constant timestamptz := clock_timestamp();
  v_lanes smallint[];
BEGIN
  UPDATE cell_splits s SET state = p_to, changed_at = v_now WHERE s.id = p_id AND s.state = p_from
    RETURNING s.lanes INTO v_lanes;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'the split is not in the state "%"; another command may have changed it', p_from;
  END IF;
  RETURN v_lanes;
END
$$;
