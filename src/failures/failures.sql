-- Failed calls: their list and their counts.

-- Stores failed calls, at most p_max of each account and minute over all servers; the row of the minute counts the others.
-- Returns how many were not stored. Minutes are locked in the order of the primary key, so batches of several servers never
-- deadlock.
CREATE OR REPLACE FUNCTION record_failures(p_minutes failure_minute[], p_calls failure_item[], p_max integer)
  RETURNS TABLE (refused bigint)
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
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

-- The failed calls of an account with ids from p_first until before p_end that match the filters, newest first, and the minutes
-- of which more than p_max calls failed. An empty filter matches all.
CREATE OR REPLACE FUNCTION list_failures(
  p_lane smallint, p_account_id text, p_key_id text, p_model text, p_code text, p_first text, p_end text, p_max integer, p_limit integer
) RETURNS SETOF failure_view
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT
  SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off
AS $$
  SELECT f.id, f.created_at, f.key_id, f.method, f.model, f.upstream, f.status, f.code, f.message, f.latency_ms, f.request_id,
      f.omitted + greatest(0, coalesce(f.received, 0) - p_max)
    FROM failures f
    WHERE f.lane = p_lane AND f.account_id = p_account_id AND f.id >= p_first AND f.id < p_end
      AND CASE WHEN f.received IS NULL
        THEN p_key_id IN ('', f.key_id) AND p_model IN ('', f.model) AND p_code IN ('', f.code)
        ELSE f.omitted > 0 OR f.received > p_max END
    ORDER BY f.id DESC LIMIT p_limit
$$;

-- The id of the row that is p_rows rows before p_end; NULL if there are fewer. Lists with filters read so many rows at once.
-- null: failures_piece
CREATE OR REPLACE FUNCTION failures_piece(p_lane smallint, p_account_id text, p_first text, p_end text, p_rows integer) RETURNS text
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT
  SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off
AS $$
  SELECT f.id FROM failures f
    WHERE f.lane = p_lane AND f.account_id = p_account_id AND f.id >= p_first AND f.id < p_end
    ORDER BY f.id DESC OFFSET p_rows - 1 LIMIT 1
$$;

-- How many failed calls of an account, with ids from p_first until before p_end, ended with each error in each period; p_starts
-- are the starts, the first not after p_first. Calls that are not stored have the code ''. An empty filter matches all.
CREATE OR REPLACE FUNCTION count_failures(
  p_lane smallint, p_account_id text, p_key_id text, p_model text, p_first text, p_end text, p_max integer, p_starts timestamptz[]
) RETURNS TABLE (period integer, code text, calls bigint)
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT
  SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
  SELECT width_bucket(f.created_at, p_starts) - 1, f.code,
      sum(CASE WHEN f.received IS NULL THEN 1 ELSE f.omitted + greatest(0, f.received - p_max) END)::bigint
    FROM failures f
    WHERE f.lane = p_lane AND f.account_id = p_account_id AND f.id >= p_first AND f.id < p_end
      AND CASE WHEN f.received IS NULL
        THEN p_key_id IN ('', f.key_id) AND p_model IN ('', f.model)
        ELSE f.omitted > 0 OR f.received > p_max END
    GROUP BY 1, 2 ORDER BY 1, 2
$$;

-- Deletes failed calls that are older than p_days, at most p_limit. Returns their number.
CREATE OR REPLACE FUNCTION sweep_failures(p_days integer, p_limit integer) RETURNS integer
  LANGUAGE sql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
  WITH deleted AS (
    DELETE FROM failures f USING (
      SELECT o.lane, o.account_id, o.id FROM failures o
      WHERE o.created_at < statement_timestamp() - make_interval(days => p_days) ORDER BY o.created_at LIMIT p_limit
    ) old WHERE f.lane = old.lane AND f.account_id = old.account_id AND f.id = old.id RETURNING 1
  )
  SELECT count(*)::integer FROM deleted
$$;
