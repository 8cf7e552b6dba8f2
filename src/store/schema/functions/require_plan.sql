-- The plan with this name; refuses when there is none.
CREATE OR REPLACE FUNCTION require_plan(p_name text) RETURNS plans
  LANGUAGE plpgsql STABLE
AS $$
DECLARE
  v_plan plans;
BEGIN
  SELECT * INTO v_plan FROM plans WHERE name = p_name;
  IF NOT FOUND THEN
    PERFORM refuse('invalid_argument', 'there is no such plan', '{"field":"plan"}');
  END IF;
  RETURN v_plan;
END
$$;
