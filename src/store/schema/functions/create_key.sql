-- Creates a key for an operator or a member: on any plan (by default the account's). The limit of an operator may exceed the plan's.
CREATE OR REPLACE FUNCTION create_key(
  p_act text, p_lane smallint, p_account_id text, p_id text, p_fingerprint bytea, p_name text, p_plan text, p_scopes smallint,
  p_rate_limit_rpm integer, p_expires_at timestamptz, p_visible_start text, p_visible_end text,
  p_models text DEFAULT NULL, p_limits text DEFAULT NULL, p_allowed_cidrs text DEFAULT NULL
) RETURNS SETOF key_view
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_account constant accounts := lock_open_account(p_lane, p_account_id);
  v_plan constant plans := require_plan(coalesce(nullif(p_plan, ''), v_account.plan));
BEGIN
  PERFORM check_member_rpm(p_act, p_rate_limit_rpm, v_plan);
  RETURN QUERY SELECT * FROM insert_key(p_lane, p_account_id, p_id, p_fingerprint, p_name, v_plan, p_scopes,
    p_rate_limit_rpm, p_rate_limit_rpm IS NOT NULL, p_expires_at, p_visible_start, p_visible_end,
    p_models => string_to_array(p_models, ','), p_limits => p_limits,
    p_allowed_cidrs => string_to_array(p_allowed_cidrs, ',')::cidr[], p_actor => actor_kind(p_act));
  PERFORM log_change(p_act, p_lane, p_id, p_account_id);
END
$$;
