-- Stores a new key, unless the account already has as many active keys as the plan allows. The caller holds the lane.
CREATE OR REPLACE FUNCTION insert_key(
  p_lane smallint, p_account_id text, p_id text, p_fingerprint bytea, p_name text, p_plan plans, p_scopes smallint,
  p_rate_limit_rpm integer, p_may_exceed_plan boolean, p_expires_at timestamptz, p_visible_start text,
  p_visible_end text, p_ancestors text[], p_is_limited boolean, p_models text[], p_limits text, p_allowed_cidrs cidr[], p_actor text,
  p_playground_of text
) RETURNS void
  LANGUAGE plpgsql
AS $$
DECLARE
  v_now constant timestamptz := clock_timestamp();
  v_key keys;
BEGIN
  IF p_expires_at <= v_now THEN
    PERFORM refuse('invalid_argument', 'must be in the future', '{"field":"expires_at"}');
  END IF;
  INSERT INTO keys (lane, fingerprint, id, account_id, name, plan, scopes, rate_limit_rpm, may_exceed_plan,
                    visible_start, visible_end, created_at, expires_at, ancestors, is_limited, models,
                    allowed_cidrs, warned_days, playground_of)
    VALUES (p_lane, p_fingerprint, p_id, p_account_id, p_name, p_plan.name, p_scopes, p_rate_limit_rpm,
            p_may_exceed_plan, p_visible_start, p_visible_end, v_now, p_expires_at, p_ancestors, p_is_limited, p_models,
            p_allowed_cidrs, days_warned(v_now, p_expires_at), p_playground_of)
    RETURNING * INTO v_key;
  PERFORM check_key_cap(p_lane, p_account_id, p_plan);
  IF p_limits IS NOT NULL THEN
    PERFORM set_limits(p_lane, p_account_id, p_id, p_limits, true, p_actor);
  END IF;
  PERFORM write_key_event(v_key, 'key.created', '{}');
END
$$;
