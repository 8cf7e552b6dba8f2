-- Changes the name and the profile of an account. NULL leaves a field unchanged.
CREATE OR REPLACE FUNCTION update_account(
  p_caller caller, p_lane smallint, p_id text, p_name text, p_external_id text, p_email text, p_notes text,
  p_low_balance_micros bigint
) RETURNS SETOF account_views
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
BEGIN
  PERFORM prove(p_caller, p_lane);
  PERFORM require_open_account(p_lane, p_id);
  IF p_name IS NOT NULL THEN
    UPDATE accounts SET name = p_name WHERE lane = p_lane AND id = p_id;
  END IF;
  IF p_low_balance_micros IS NOT NULL THEN
    UPDATE accounts SET low_balance_micros = nullif(p_low_balance_micros, 0) WHERE lane = p_lane AND id = p_id;
  END IF;
  PERFORM put_profile(p_lane, p_id, p_external_id, p_email, p_notes);
  PERFORM log_change(p_caller, p_lane, p_id, p_id);
  RETURN QUERY SELECT * FROM get_account(p_lane, p_id);
END
$$;
