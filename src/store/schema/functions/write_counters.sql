-- Writes changed counters to their places. The caller holds the locks of the lanes, and has read the places since.
CREATE OR REPLACE FUNCTION write_counters(p_places tid[], p_counters limit_counter[]) RETURNS void
  LANGUAGE plpgsql
AS $$
DECLARE
  v_written integer;
BEGIN
  UPDATE limit_counters c SET
    counter = p_counters[t.n],
    expires_at = CASE WHEN c.user_id = '' THEN c.expires_at ELSE last_window_end(p_counters[t.n]) END
  FROM unnest(p_places) WITH ORDINALITY t (place, n) WHERE c.ctid = t.place;
  GET DIAGNOSTICS v_written = ROW_COUNT;
  IF v_written <> cardinality(p_places) THEN
    RAISE EXCEPTION 'only % of % counters of limits were found at their places', v_written, cardinality(p_places);
  END IF;
END
$$;
