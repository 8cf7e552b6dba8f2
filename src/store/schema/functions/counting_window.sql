-- The window in which a call in p_current is counted; p_stored is the window of the last counted call. A window does not
-- move back, so that a small correction of the clock does not allow a used window again. If p_stored is more than one
-- window ahead, the clock was set back, and counting restarts in the current window.
CREATE OR REPLACE FUNCTION counting_window(p_stored integer, p_current integer) RETURNS integer
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN CASE WHEN p_stored > p_current + 1 THEN p_current ELSE greatest(p_stored, p_current) END;
