-- Creates an account with an empty balance. A NULL in the profile means none.
CREATE OR REPLACE FUNCTION create_account(
  p_caller caller, p_lane smallint, p_id text, p_name text, p_plan text, p_external_id text DEFAULT NULL,
  p_email text DEFAULT NULL, p_notes text DEFAULT NULL
) RETURNS SETOF account_views
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
BEGIN
  PERFORM prove(p_caller, p_lane);
  PERFORM require_plan(p_plan);
  IF p_lane <> lane_of(p_id) THEN
    RAISE EXCEPTION 'the lane of an account is not that of its id' USING ERRCODE = 'check_violation';
  END IF;
  INSERT INTO accounts (lane, id, name, plan, created_at)
    VALUES (p_lane, p_id, p_name, p_plan, clock_timestamp());
  PERFORM put_profile(p_lane, p_id, p_external_id, p_email, p_notes);
  PERFORM log_change(p_caller, p_lane, p_id, p_id);
  RETURN QUERY SELECT * FROM get_account(p_lane, p_id);
END
$$;
