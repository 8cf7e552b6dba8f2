-- Writes changed counters. The caller holds the locks of the lanes, and has read their places since.
CREATE OR REPLACE FUNCTION write_counters(p_counters limit_counter[]) RETURNS void
  LANGUAGE plpgsql
AS $$
DECLARE
  v_written integer;
BEGIN
  UPDATE limit_counters c SET
    window_ends = t.window_ends, spent = t.spent, held = t.held, counted_since = t.counted_since,
    expires_at = CASE WHEN c.user_id = '' THEN c.expires_at ELSE (SELECT max(e) FROM unnest(t.window_ends) e) END
  FROM unnest(p_counters) t WHERE c.ctid = t.place;
  GET DIAGNOSTICS v_written = ROW_COUNT;
  IF v_written <> cardinality(p_counters) THEN
    RAISE EXCEPTION 'only % of % counters of limits were found at their places', v_written, cardinality(p_counters);
  END IF;
END
$$;
