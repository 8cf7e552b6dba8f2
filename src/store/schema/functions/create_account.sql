-- Creates an account with an empty balance.
CREATE OR REPLACE FUNCTION create_account(p_act text, p_lane smallint, p_id text, p_name text, p_plan text) RETURNS SETOF accounts
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
BEGIN
  PERFORM require_plan(p_plan);
  IF p_lane <> lane_of(p_id) THEN
    RAISE EXCEPTION 'the lane of an account is not that of its id' USING ERRCODE = 'check_violation';
  END IF;
  INSERT INTO accounts (lane, id, name, plan, created_at)
    VALUES (p_lane, p_id, p_name, p_plan, clock_timestamp());
  PERFORM log_change(p_act, p_lane, p_id, p_id);
  RETURN QUERY SELECT * FROM get_account(p_lane, p_id);
END
$$;
