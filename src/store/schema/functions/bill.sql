-- One batch of everything that moves money for generations. Endings come first, so that the amounts they release can be held in
-- the same batch. p_lanes are the lanes of the batch, each once.
--
-- p_not_after is the database's time after which the server no longer waits for the result. A statement that arrives
-- later, for example on a connection that stalled, must change nothing: its callers already have an error.
CREATE OR REPLACE FUNCTION bill(
  p_server_id text, p_not_after timestamptz, p_lanes smallint[], p_ends entry_item[], p_holds hold_item[]
) RETURNS SETOF item_result
  LANGUAGE plpgsql SECURITY DEFINER
  SET search_path FROM CURRENT
  -- Plans are made once, possibly while the tables are empty; only index look-ups are fast at every size.
  SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
DECLARE
  v_lanes integer;
  v_plans plans_with_limits;
  v_recent timestamptz;
  v_results item_result[];
BEGIN
  -- In ascending order, so that batches of several servers never deadlock.
  PERFORM 1 FROM lanes l WHERE l.lane = ANY (p_lanes) AND l.is_owned ORDER BY l.lane FOR UPDATE;
  GET DIAGNOSTICS v_lanes = ROW_COUNT;
  IF v_lanes <> cardinality(p_lanes) THEN
    PERFORM raise_lane_moved();
  END IF;
  -- Waiting for the locks may have taken long.
  IF clock_timestamp() > p_not_after THEN
    RETURN NEXT ROW('late', 0, NULL, NULL, NULL, NULL, clock_timestamp(), NULL)::item_result;
    RETURN;
  END IF;
  v_plans := limited_plans();
  IF cardinality(p_ends) > 0 THEN
    v_results := post_entries(p_ends, v_plans);
    RETURN QUERY SELECT * FROM unnest(v_results);
  END IF;
  IF cardinality(p_holds) > 0 THEN
    -- Holds of a server that is not registered would be released as abandoned. Other servers remove one without a
    -- heartbeat for 20 s, so a registration that is nearly as old is renewed.
    v_recent := clock_timestamp() - interval '10 seconds';
    IF NOT EXISTS (SELECT 1 FROM servers s WHERE s.id = p_server_id AND s.seen_at > v_recent) THEN
      PERFORM heartbeat(p_server_id);
    END IF;
    v_results := place_holds(p_server_id, p_holds, v_plans);
    RETURN QUERY SELECT * FROM unnest(v_results);
  END IF;
END
$$;
