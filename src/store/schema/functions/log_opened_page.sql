-- Logs that the caller opens a page of an account: an operator its customer page, a member its page at the payment provider.
CREATE OR REPLACE FUNCTION log_opened_page(p_caller caller, p_lane smallint, p_account_id text) RETURNS void
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
BEGIN
  PERFORM prove(p_caller, p_lane);
  PERFORM require_account(p_lane, p_account_id);
  PERFORM log_change(p_caller, p_lane, p_account_id, p_account_id);
END
$$;
