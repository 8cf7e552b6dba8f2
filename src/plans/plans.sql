-- Plans.

-- All plans.
CREATE OR REPLACE FUNCTION list_plans() RETURNS SETOF plans
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT
AS $$
  SELECT p.* FROM plans p ORDER BY p.name
$$;

-- The number of accounts that are not closed and of active keys on each plan, in the lanes of the cell.
CREATE OR REPLACE FUNCTION count_plans() RETURNS TABLE (plan text, accounts bigint, keys bigint)
  LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_elsewhere constant smallint[] := ARRAY(SELECT l.lane FROM lanes l WHERE NOT l.is_owned);
BEGIN
  RETURN QUERY
  SELECT p.name, coalesce(a.accounts, 0), coalesce(k.keys, 0)
  FROM plans p
  LEFT JOIN (
    SELECT i.plan, count(*) AS accounts FROM accounts i
    WHERE i.closed_at IS NULL AND i.lane <> ALL (v_elsewhere) GROUP BY i.plan
  ) a ON a.plan = p.name
  LEFT JOIN (
    SELECT i.plan, count(*) AS keys FROM keys i
    WHERE i.revoked_at IS NULL AND coalesce(i.expires_at, 'infinity') > clock_timestamp() AND i.lane <> ALL (v_elsewhere)
    GROUP BY i.plan
  ) k ON k.plan = p.name;
END
$$;

-- Creates or changes a plan. Without a limit on created keys, an account may replace all its keys ten times an hour.
-- null: p_max_keys_created_per_hour
CREATE OR REPLACE FUNCTION put_plan(
  p_caller caller, p_name text, p_rpm integer, p_max_active_keys integer, p_max_keys_created_per_hour integer
) RETURNS SETOF plans
  LANGUAGE sql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
  SELECT prove(p_caller);
  INSERT INTO plans AS p (name, rpm, max_active_keys, max_keys_created_per_hour)
    VALUES (p_name, p_rpm, p_max_active_keys, coalesce(p_max_keys_created_per_hour, 10 * p_max_active_keys))
    ON CONFLICT ON CONSTRAINT plans_pkey DO UPDATE
      SET rpm = excluded.rpm, max_active_keys = excluded.max_active_keys,
          max_keys_created_per_hour = excluded.max_keys_created_per_hour;
  SELECT log_shared_change(p_caller, no_lane(), p_name, '');
  SELECT p.* FROM plans p WHERE p.name = p_name;
$$;

-- The plan with this name; refuses when there is none.
CREATE OR REPLACE FUNCTION require_plan(p_name text) RETURNS plans
  LANGUAGE plpgsql STABLE
AS $$
DECLARE
  v_plan plans;
BEGIN
  SELECT * INTO v_plan FROM plans WHERE name = p_name;
  PERFORM refuse('invalid_argument', 'there is no such plan', '{"field":"plan"}') WHERE NOT FOUND;
  RETURN v_plan;
END
$$;
