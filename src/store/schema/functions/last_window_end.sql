-- When the last window of a counter ends; '-infinity' without a limit.
CREATE OR REPLACE FUNCTION last_window_end(p_counter limit_counter) RETURNS timestamptz
  LANGUAGE plpgsql IMMUTABLE
AS $$
DECLARE
  v_last timestamptz := '-infinity';
BEGIN
  FOR i IN 1..cardinality(p_counter.window_ends) LOOP
    v_last := greatest(v_last, p_counter.window_ends[i]);
  END LOOP;
  RETURN v_last;
END
$$;
