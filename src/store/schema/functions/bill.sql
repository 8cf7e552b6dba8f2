-- One batch of everything that moves money for generations. Endings come first, so that what they release can be held
-- in the same batch.
--
-- p_not_after is the database's time after which the server no longer waits for the result. A statement that arrives
-- later, for example on a connection that stalled, must change nothing: its calls were already answered.
CREATE OR REPLACE FUNCTION bill(
  p_server_id text, p_not_after timestamptz, p_lanes smallint[], p_ends json, p_holds json
) RETURNS TABLE (
    kind text, n bigint, outcome text, balance_micros bigint, held_micros bigint, amount_micros bigint, answer text,
    clock timestamptz
  )
  LANGUAGE plpgsql SECURITY DEFINER
  SET search_path FROM CURRENT
  -- The plans are made once, perhaps while the tables are empty: only index look-ups suit every size.
  SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
DECLARE
  v_recent timestamptz;
BEGIN
  -- In ascending order, so that batches of several servers never deadlock.
  PERFORM 1 FROM lanes l WHERE l.lane = ANY (p_lanes) ORDER BY l.lane FOR UPDATE;
  -- Waiting for the locks may have taken long.
  IF clock_timestamp() > p_not_after THEN
    RETURN QUERY SELECT 'late', 0::bigint, NULL, NULL::bigint, NULL::bigint, NULL::bigint, NULL, clock_timestamp();
    RETURN;
  END IF;
  -- Holds of a server that is not registered would be released as abandoned. Other servers remove one without a
  -- heartbeat for 20 s, so a registration that is nearly as old is renewed.
  v_recent := clock_timestamp() - interval '10 seconds';
  IF json_array_length(p_holds) > 0
      AND NOT EXISTS (SELECT 1 FROM servers s WHERE s.id = p_server_id AND s.seen_at > v_recent) THEN
    PERFORM beat(p_server_id);
  END IF;
  IF json_array_length(p_ends) > 0 THEN
    RETURN QUERY SELECT 'end', x.n, x.outcome, x.balance_micros, NULL::bigint, x.amount_micros, NULL, NULL::timestamptz
      FROM post_entries(p_ends) x;
  END IF;
  IF json_array_length(p_holds) > 0 THEN
    RETURN QUERY SELECT 'hold', x.n, x.outcome, x.balance_micros, x.held_micros, NULL::bigint, x.answer, NULL::timestamptz
      FROM place_holds(p_server_id, p_holds) x;
  END IF;
END
$$;
