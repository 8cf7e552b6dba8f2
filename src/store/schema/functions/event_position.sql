-- The number of the last event that a reader knows. p_after is its id: empty for none, 'now' for all events until now. p_at is the
-- time in the id, and p_days for how long events are kept.
CREATE OR REPLACE FUNCTION event_position(p_lane smallint, p_account_id text, p_after text, p_at timestamptz, p_days integer)
  RETURNS bigint
  LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path FROM CURRENT
  SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
DECLARE
  v_seq bigint := 0;
BEGIN
  IF p_after = 'now' THEN
    SELECT e.seq INTO v_seq FROM event_ends e WHERE e.lane = p_lane AND e.account_id = p_account_id;
  ELSIF p_after <> '' THEN
    SELECT e.seq INTO v_seq FROM events e WHERE e.lane = p_lane AND e.id = p_after AND e.account_id = p_account_id;
    IF NOT FOUND AND p_at < clock_timestamp() - make_interval(days => p_days) THEN
      PERFORM refuse('cursor_expired');
    ELSIF NOT FOUND THEN
      PERFORM refuse('invalid_argument', 'is not the id of an event of this account', '{"field":"after"}');
    END IF;
  END IF;
  RETURN coalesce(v_seq, 0);
END
$$;
