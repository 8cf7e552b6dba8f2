-- The plans that have limits. Every batch calls it.
CREATE OR REPLACE FUNCTION limited_plans() RETURNS plans_with_limits
  LANGUAGE plpgsql STABLE
AS $$
DECLARE
  v_plans plans_with_limits;
BEGIN
  v_plans.names := (SELECT array_agg(l.owner_id) FROM limits l WHERE l.lane = 1024);
  IF v_plans.names IS NOT NULL THEN
    v_plans.version := (SELECT s.version FROM shared_data s);
  END IF;
  RETURN v_plans;
END
$$;
