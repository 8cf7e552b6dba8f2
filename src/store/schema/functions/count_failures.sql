-- How many failed calls of an account, with ids from p_first until before p_end, ended with each error in each period; p_starts are their
-- starts, the first of which is not after p_first. The rows of minutes count the calls that are not stored: these have the code ''. An
-- empty filter matches all.
CREATE OR REPLACE FUNCTION count_failures(
  p_lane smallint, p_account_id text, p_key_id text, p_model text, p_first text, p_end text, p_max integer, p_starts timestamptz[]
) RETURNS TABLE (period integer, code text, calls bigint)
  LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path FROM CURRENT
  SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
BEGIN
  RETURN QUERY SELECT width_bucket(f.created_at, p_starts) - 1, f.code,
      sum(CASE WHEN f.received IS NULL THEN 1 ELSE f.omitted + greatest(0, f.received - p_max) END)::bigint
    FROM failures f
    WHERE f.lane = p_lane AND f.account_id = p_account_id AND f.id >= p_first AND f.id < p_end
      AND CASE WHEN f.received IS NULL
        THEN p_key_id IN ('', f.key_id) AND p_model IN ('', f.model)
        ELSE f.omitted > 0 OR f.received > p_max END
    GROUP BY 1, 2 ORDER BY 1, 2;
END
$$;
