-- Creates or changes a plan.
CREATE OR REPLACE FUNCTION put_plan(p_name text, p_rpm integer, p_max_active_keys integer) RETURNS SETOF plans
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
BEGIN
  RETURN QUERY INSERT INTO plans AS p (name, rpm, max_active_keys) VALUES (p_name, p_rpm, p_max_active_keys)
    ON CONFLICT ON CONSTRAINT plans_pkey DO UPDATE
      SET rpm = excluded.rpm, max_active_keys = excluded.max_active_keys
    RETURNING p.*;
END
$$;
