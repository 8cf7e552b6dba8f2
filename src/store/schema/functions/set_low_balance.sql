-- Sets the threshold of the event balance.low; NULL for none.
CREATE OR REPLACE FUNCTION set_low_balance(p_caller caller, p_lane smallint, p_id text, p_micros bigint) RETURNS SETOF account_views
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
BEGIN
  PERFORM prove(p_caller, p_lane);
  PERFORM require_open_account(p_lane, p_id);
  UPDATE accounts SET low_balance_micros = p_micros WHERE lane = p_lane AND id = p_id;
  PERFORM log_change(p_caller, p_lane, p_id, p_id);
  RETURN QUERY SELECT * FROM get_account(p_lane, p_id);
END
$$;
