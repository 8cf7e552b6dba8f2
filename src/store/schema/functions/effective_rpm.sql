-- The limit that applies to a key.
CREATE OR REPLACE FUNCTION effective_rpm(p_own integer, p_may_exceed_plan boolean, p_plan integer) RETURNS integer
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN CASE WHEN p_may_exceed_plan THEN p_own ELSE least(p_own, p_plan) END;
