-- The plans that have limits.
CREATE OR REPLACE FUNCTION limited_plans() RETURNS plans_with_limits
  LANGUAGE plpgsql STABLE
AS $$
DECLARE
  v_plans plans_with_limits;
BEGIN
  SELECT array_agg(DISTINCT l.owner_id), (SELECT s.version FROM shared_data s) INTO v_plans FROM limits l WHERE l.lane = 1024;
  RETURN v_plans;
END
$$;
