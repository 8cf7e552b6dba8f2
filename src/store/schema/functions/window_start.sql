-- The start of the window that a time is in, in UTC; weeks start on Monday. '-infinity' for the windows that never end.
CREATE OR REPLACE FUNCTION window_start(p_period text, p_at timestamptz) RETURNS timestamptz
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN CASE WHEN p_period IN ('', 'total') THEN '-infinity'::timestamptz
    ELSE date_trunc(p_period, p_at AT TIME ZONE 'UTC') AT TIME ZONE 'UTC' END;
