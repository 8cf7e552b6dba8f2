-- The failed calls of an account with ids from p_first until before p_end that match the filters, newest first, and the minutes of which more
-- than p_max calls failed. An empty filter matches all.
CREATE OR REPLACE FUNCTION list_failures(
  p_lane smallint, p_account_id text, p_key_id text, p_model text, p_code text, p_first text, p_end text, p_max integer, p_limit integer
) RETURNS SETOF failure_view
  LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path FROM CURRENT
  SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off
AS $$
BEGIN
  RETURN QUERY SELECT f.id, f.created_at, f.key_id, f.method, f.model, f.upstream, f.status, f.code, f.message, f.latency_ms, f.request_id,
      f.omitted + greatest(0, coalesce(f.received, 0) - p_max)
    FROM failures f
    WHERE f.lane = p_lane AND f.account_id = p_account_id AND f.id >= p_first AND f.id < p_end
      AND CASE WHEN f.received IS NULL
        THEN p_key_id IN ('', f.key_id) AND p_model IN ('', f.model) AND p_code IN ('', f.code)
        ELSE f.omitted > 0 OR f.received > p_max END
    ORDER BY f.id DESC LIMIT p_limit;
END
$$;
