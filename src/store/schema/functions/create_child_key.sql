-- Creates a key for the holder of another key of the account, its parent. The new key has the parent's plan and at
-- most its scopes, limit and expiry. An omitted limit or expiry (NULL) is the parent's; omitted scopes are those of
-- p_default_scopes that the parent has. Returns the key, or how many seconds the account must wait before it creates
-- another.
CREATE OR REPLACE FUNCTION create_child_key(
  p_lane smallint, p_account_id text, p_parent_id text, p_id text, p_fingerprint bytea, p_name text,
  p_scopes smallint, p_default_scopes smallint, p_rate_limit_rpm integer, p_expires_at timestamptz,
  p_visible_start text, p_visible_end text, p_models text DEFAULT NULL, p_limits text DEFAULT NULL,
  p_allowed_cidrs text DEFAULT NULL
) RETURNS TABLE (
    wait_seconds integer, max_keys_created_per_hour integer, id text, account_id text, name text, plan text,
    scopes smallint, state text, rpm integer, visible_start text, visible_end text, created_at timestamptz,
    revoked_at timestamptz, expires_at timestamptz, last_used_at timestamptz,
    previous_expires_at timestamptz, models text, limits text,
    allowed_cidrs text
  )
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_account constant accounts := lock_account(p_lane, p_account_id);
  v_parent constant keys := lock_parent_key(p_lane, v_account.id, p_parent_id);
  v_plan constant plans := require_plan(v_parent.plan);
  v_models constant text[] := string_to_array(p_models, ',');
  v_cidrs constant cidr[] := string_to_array(p_allowed_cidrs, ',');
  v_scopes constant smallint := scopes_of_child(v_parent.scopes, p_scopes, p_default_scopes);
  -- A limit that an operator gave to the parent may exceed the plan; the limit of the new key may not.
  v_max_rpm constant integer := effective_rpm(v_parent.rate_limit_rpm, false, v_plan.rpm);
BEGIN
  IF cardinality(v_parent.ancestors) >= 7 THEN
    PERFORM refuse('invalid_argument', 'This key would be the ninth of a chain in which each key created the next; eight are allowed.');
  END IF;
  PERFORM check_key_bounds(v_parent, v_max_rpm, p_rate_limit_rpm, p_expires_at, v_models, v_cidrs);
  PERFORM check_limit_bounds(v_parent, p_limits::json);
  wait_seconds := count_key_creation(p_lane, v_account.id, v_plan.max_keys_created_per_hour);
  IF wait_seconds > 0 THEN
    max_keys_created_per_hour := v_plan.max_keys_created_per_hour;
    plan := v_plan.name;
    RETURN NEXT;
    RETURN;
  END IF;
  -- The limit is stored even if the plan's is lower, so that the new key stays below its parent when the plan is raised.
  RETURN QUERY SELECT 0, v_plan.max_keys_created_per_hour, k.* FROM insert_key(
    p_lane, v_account.id, p_id, p_fingerprint, p_name, v_plan, v_scopes,
    coalesce(p_rate_limit_rpm, v_parent.rate_limit_rpm), false, coalesce(p_expires_at, v_parent.expires_at),
    p_visible_start, p_visible_end, v_parent.ancestors || v_parent.id, v_parent.is_limited, p_models => coalesce(v_models, v_parent.models),
    p_limits => p_limits, p_allowed_cidrs => coalesce(v_cidrs, v_parent.allowed_cidrs)) k;
END
$$;
