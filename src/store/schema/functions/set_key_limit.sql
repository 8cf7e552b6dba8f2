-- Sets the limit of a key, or removes it. A limit set here may exceed that of the plan.
CREATE OR REPLACE FUNCTION set_key_limit(p_act text, p_lane smallint, p_id text, p_rate_limit_rpm integer)
  RETURNS SETOF key_view
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_account_id text;
BEGIN
  PERFORM require_lane(p_lane);
  UPDATE keys SET rate_limit_rpm = p_rate_limit_rpm, may_exceed_plan = p_rate_limit_rpm IS NOT NULL
    WHERE lane = p_lane AND id = p_id RETURNING account_id INTO v_account_id;
  IF FOUND THEN
    PERFORM log_change(p_act, p_lane, p_id, v_account_id);
  END IF;
  RETURN QUERY SELECT * FROM view_keys(p_lane, '', p_id, '', 1);
END
$$;
