-- Creates the account of a sign-up, unless an earlier call created it.
CREATE OR REPLACE FUNCTION create_sign_up_account(p_act text, p_lane smallint, p_id text, p_name text, p_plan text, p_email text)
  RETURNS void
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
BEGIN
  PERFORM 1 FROM lanes WHERE lane = p_lane AND is_owned FOR UPDATE;
  IF NOT FOUND THEN
    PERFORM raise_lane_moved();
  END IF;
  PERFORM 1 FROM accounts WHERE lane = p_lane AND id = p_id;
  IF NOT FOUND THEN
    PERFORM create_account(p_act, p_lane, p_id, p_name, p_plan, NULL, p_email, NULL);
  END IF;
END
$$;
