-- Creates a key. A key that another one creates, its parent, has the parent's plan and at most its scopes, limit, expiry, models and
-- addresses; what is omitted (NULL, or no scopes) is the parent's, and of the default scopes those that the parent has. A member's key
-- has the plan of the account and at most its limit, and scopes that the role covers. Only an operator chooses the plan (by default the
-- account's) and may exceed its limit. A member has at most one key of the playground: a repetition renews it. Returns the key, or how
-- many seconds the account must wait before its keys and members can create another.
CREATE OR REPLACE FUNCTION create_key(
  p_caller caller, p_lane smallint, p_account_id text, p_id text, p_fingerprint bytea, p_name text, p_plan text, p_scopes smallint,
  p_default_scopes smallint, p_rate_limit_rpm integer, p_expires_at timestamptz, p_visible_start text, p_visible_end text,
  p_models text DEFAULT NULL, p_limits text DEFAULT NULL, p_allowed_cidrs text DEFAULT NULL,
  p_is_playground boolean DEFAULT false
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
  v_parent constant keys := prove(p_caller, p_lane);
  v_account constant accounts := require_open_account(p_lane, p_account_id);
  v_is_operator constant boolean := actor_kind(p_caller) = 'operator';
  v_plan constant plans := require_plan(coalesce(v_parent.plan, CASE WHEN v_is_operator THEN nullif(p_plan, '') END, v_account.plan));
  v_models constant text[] := string_to_array(p_models, ',');
  v_cidrs constant cidr[] := string_to_array(p_allowed_cidrs, ',');
  v_scopes smallint := CASE p_scopes WHEN 0 THEN p_default_scopes ELSE p_scopes END;
  v_id text;
BEGIN
  IF v_parent.id IS NOT NULL THEN
    IF cardinality(v_parent.ancestors) >= 7 THEN
      PERFORM refuse('invalid_argument', 'This key would be the ninth of a chain in which each key created the next; eight are allowed.');
    END IF;
    v_scopes := scopes_of_child(v_parent.scopes, p_scopes, p_default_scopes);
    -- A limit that an operator gave to the parent may exceed the plan; the limit of the new key may not.
    PERFORM check_key_bounds(v_parent, effective_rpm(v_parent.rate_limit_rpm, false, v_plan.rpm), p_rate_limit_rpm, p_expires_at, v_models,
      v_cidrs);
    PERFORM check_limit_bounds(v_parent, p_limits::json);
  ELSIF NOT v_is_operator THEN
    PERFORM check_rpm(NULL, p_rate_limit_rpm, v_plan);
    IF v_scopes & ~p_caller.covered_scopes <> 0 THEN
      PERFORM refuse('invalid_argument', format('must be among the scopes of your role: %s', names_of_scopes(p_caller.covered_scopes)),
        '{"field":"scopes"}');
    END IF;
  END IF;
  IF p_is_playground THEN
    v_id := renew_playground_key(p_caller, v_plan, p_fingerprint, p_expires_at, p_visible_start, p_visible_end);
  END IF;
  IF v_id IS NULL THEN
    IF NOT v_is_operator THEN
      wait_seconds := count_key_creation(p_lane, v_account.id, v_plan.max_keys_created_per_hour);
      IF wait_seconds > 0 THEN
        max_keys_created_per_hour := v_plan.max_keys_created_per_hour;
        plan := v_plan.name;
        RETURN NEXT;
        RETURN;
      END IF;
    END IF;
    -- The limit of the parent is stored even if the plan's is lower, so that the new key stays below its parent when the plan is raised.
    PERFORM insert_key(
      p_lane, v_account.id, p_id, p_fingerprint, p_name, v_plan, v_scopes,
      coalesce(p_rate_limit_rpm, v_parent.rate_limit_rpm), v_is_operator AND p_rate_limit_rpm IS NOT NULL,
      coalesce(p_expires_at, v_parent.expires_at), p_visible_start, p_visible_end,
      CASE WHEN v_parent.id IS NULL THEN '{}' ELSE v_parent.ancestors || v_parent.id END,
      coalesce(v_parent.is_limited, false), coalesce(v_models, v_parent.models), p_limits, coalesce(v_cidrs, v_parent.allowed_cidrs),
      actor_kind(p_caller), CASE WHEN p_is_playground THEN p_caller.id END);
    v_id := p_id;
  END IF;
  RETURN QUERY SELECT 0, v_plan.max_keys_created_per_hour, k.* FROM keys_by_id(p_lane, ARRAY[v_id]) k;
  PERFORM log_change(p_caller, p_lane, v_id, v_account.id);
END
$$;
