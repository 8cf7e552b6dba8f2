-- The counter in the windows that a time is in.
CREATE OR REPLACE FUNCTION restart_windows(p_counter limit_counter, p_at timestamptz) RETURNS limit_counter
  LANGUAGE plpgsql STABLE
AS $$
DECLARE
  c limit_counter := p_counter;
BEGIN
  FOR i IN 1..cardinality(c.window_ends) LOOP
    IF c.window_ends[i] <= p_at THEN
      c.window_ends[i] := window_end(c.periods[i], p_at);
      c.spent[i] := 0;
      c.counted_since[i] := '-infinity';
    END IF;
  END LOOP;
  RETURN c;
END
$$;
