-- The window that a call at p_current counts in, where p_stored is the one it counted in last. A window does not move
-- back, so that one that was used up does not come again when the clock is corrected a little. A window that lies more
-- than one ahead means that the clock was set back: counting restarts in the current one, and the caller keeps the count.
CREATE OR REPLACE FUNCTION counting_window(p_stored integer, p_current integer) RETURNS integer
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN CASE WHEN p_stored > p_current + 1 THEN p_current ELSE greatest(p_stored, p_current) END;
