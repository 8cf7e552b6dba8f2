-- Creates the account of a sign-up, unless an earlier call created it.
CREATE OR REPLACE FUNCTION create_sign_up_account(p_caller caller, p_lane smallint, p_id text, p_name text, p_plan text, p_email text)
  RETURNS void
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
BEGIN
  PERFORM prove(p_caller, p_lane);
  PERFORM 1 FROM accounts WHERE lane = p_lane AND id = p_id;
  IF NOT FOUND THEN
    PERFORM create_account(p_caller, p_lane, p_id, p_name, p_plan, NULL, p_email, NULL);
  END IF;
END
$$;
