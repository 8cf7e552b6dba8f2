-- Creates or changes a plan. Without a limit on created keys, an account may replace all its keys ten times an hour.
CREATE OR REPLACE FUNCTION put_plan(
  p_caller caller, p_name text, p_rpm integer, p_max_active_keys integer, p_max_keys_created_per_hour integer
) RETURNS SETOF plans
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
BEGIN
  PERFORM prove(p_caller);
  INSERT INTO plans AS p (name, rpm, max_active_keys, max_keys_created_per_hour)
    VALUES (p_name, p_rpm, p_max_active_keys, coalesce(p_max_keys_created_per_hour, 10 * p_max_active_keys))
    ON CONFLICT ON CONSTRAINT plans_pkey DO UPDATE
      SET rpm = excluded.rpm, max_active_keys = excluded.max_active_keys,
          max_keys_created_per_hour = excluded.max_keys_created_per_hour;
  PERFORM log_change(p_caller, no_lane(), p_name, '');
  PERFORM change_shared_data();
  RETURN QUERY SELECT p.* FROM plans p WHERE p.name = p_name;
END
$$;
