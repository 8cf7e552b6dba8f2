-- Changes the plan of an account. Its keys on the former plan follow; keys on another plan keep theirs.
CREATE OR REPLACE FUNCTION set_account_plan(p_act text, p_lane smallint, p_id text, p_plan text) RETURNS SETOF account_views
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_account constant accounts := lock_account(p_lane, p_id);
  v_plan constant plans := require_plan(p_plan);
BEGIN
  UPDATE keys SET plan = p_plan
    WHERE lane = p_lane AND account_id = p_id AND plan = v_account.plan AND plan <> p_plan AND revoked_at IS NULL;
  IF FOUND THEN
    PERFORM check_key_cap(p_lane, p_id, v_plan);
  END IF;
  UPDATE accounts SET plan = p_plan WHERE lane = p_lane AND id = p_id;
  PERFORM log_change(p_act, p_lane, p_id, p_id);
  RETURN QUERY SELECT * FROM get_account(p_lane, p_id);
END
$$;
