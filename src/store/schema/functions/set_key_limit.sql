-- Sets the limit of a key, or removes it. A limit set here may exceed that of the plan.
CREATE OR REPLACE FUNCTION set_key_limit(p_caller caller, p_lane smallint, p_id text, p_rate_limit_rpm integer)
  RETURNS SETOF key_view
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_proven constant keys := prove(p_caller, p_lane);
  v_key constant keys := key_in_reach(p_caller, p_lane, p_id);
BEGIN
  PERFORM require_open_account(p_lane, v_key.account_id);
  UPDATE keys SET rate_limit_rpm = p_rate_limit_rpm, may_exceed_plan = p_rate_limit_rpm IS NOT NULL WHERE lane = p_lane AND id = p_id;
  PERFORM log_change(p_caller, p_lane, p_id, v_key.account_id);
  RETURN QUERY SELECT * FROM keys_by_id(p_lane, ARRAY[p_id]);
END
$$;
