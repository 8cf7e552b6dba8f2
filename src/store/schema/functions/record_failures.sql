-- Stores failed calls, at most p_max of each account and minute over all servers; the row of the minute counts the others. Returns how many
-- of the given calls were not stored. Rows of minutes are locked in the order of the primary key, so batches of several servers never
-- deadlock.
CREATE OR REPLACE FUNCTION record_failures(p_minutes failure_minute[], p_calls failure_item[], p_max integer)
  RETURNS TABLE (refused bigint)
  LANGUAGE plpgsql SECURITY DEFINER
  SET search_path FROM CURRENT
  SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
BEGIN
  IF EXISTS (
    SELECT 1 FROM lanes l WHERE NOT l.is_owned AND l.lane = ANY (ARRAY(SELECT m.lane FROM unnest(p_minutes) m))
  ) THEN
    PERFORM raise_lane_moved();
  END IF;
  -- A crash may lose the last second of failures; in return, nothing waits for the disk.
  PERFORM set_config('synchronous_commit', 'off', true);
  RETURN QUERY
  WITH minutes AS (
    INSERT INTO failures AS f (lane, account_id, id, created_at, received, omitted)
    SELECT m.lane, m.account_id, m.id, timestamptz 'epoch' + m.at_ms * interval '1 millisecond', m.calls, m.omitted
    FROM unnest(p_minutes) m ORDER BY m.lane, m.account_id, m.id
    ON CONFLICT ON CONSTRAINT failures_pkey DO UPDATE
      SET received = f.received + excluded.received, omitted = f.omitted + excluded.omitted
    RETURNING f.lane, f.account_id, f.id, f.received
  ), stored AS (
    INSERT INTO failures (lane, account_id, id, created_at, key_id, method, model, upstream, status, code, message, latency_ms, request_id)
    SELECT m.lane, m.account_id, c.id, timestamptz 'epoch' + c.at_ms * interval '1 millisecond', c.key_id, c.method, c.model, c.upstream,
           c.status, c.code, c.message, c.latency_ms, c.request_id
    FROM unnest(p_calls) c
    JOIN unnest(p_minutes) WITH ORDINALITY AS g (lane, account_id, id, at_ms, calls, omitted, n) ON g.n = c.minute
    JOIN minutes m ON m.lane = g.lane AND m.account_id = g.account_id AND m.id = g.id
    WHERE m.received - c.later <= p_max
    -- A batch whose result was lost is sent again.
    ON CONFLICT ON CONSTRAINT failures_pkey DO NOTHING
    RETURNING 1
  )
  SELECT cardinality(p_calls) - (SELECT count(*) FROM stored);
END
$$;
