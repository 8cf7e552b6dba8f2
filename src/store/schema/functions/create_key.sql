-- Creates an active key, unless the account already has as many as its plan allows.
CREATE OR REPLACE FUNCTION create_key(
  p_lane smallint, p_account_id text, p_id text, p_fingerprint bytea, p_name text, p_plan text, p_scopes smallint,
  p_rate_limit_rpm integer, p_may_exceed_plan boolean, p_expires_at timestamptz, p_visible_start text,
  p_visible_end text
) RETURNS SETOF key_view
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_account constant accounts := lock_account(p_lane, p_account_id);
  v_plan constant plans := require_plan(coalesce(nullif(p_plan, ''), v_account.plan));
  v_now constant timestamptz := clock_timestamp();
BEGIN
  IF p_expires_at <= v_now THEN
    PERFORM refuse('invalid_argument', 'must be in the future', '{"field":"expires_at"}');
  END IF;
  IF p_rate_limit_rpm > v_plan.rpm AND NOT p_may_exceed_plan THEN
    PERFORM refuse('invalid_argument',
      format('rate_limit_rpm can be at most %s, the limit of the plan "%s"', v_plan.rpm, v_plan.name),
      '{"field":"rate_limit_rpm"}');
  END IF;
  INSERT INTO keys (lane, fingerprint, id, account_id, name, plan, scopes, rate_limit_rpm, may_exceed_plan,
                       visible_start, visible_end, created_at, expires_at)
    VALUES (p_lane, p_fingerprint, p_id, p_account_id, p_name, v_plan.name, p_scopes, p_rate_limit_rpm,
            p_may_exceed_plan AND p_rate_limit_rpm IS NOT NULL, p_visible_start, p_visible_end, v_now, p_expires_at);
  PERFORM check_key_cap(p_lane, p_account_id, v_plan);
  RETURN QUERY SELECT * FROM view_keys(p_lane, p_account_id, p_id, '', 1);
END
$$;
