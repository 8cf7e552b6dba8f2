-- Creates the link with which an operator views the page of an account, in the first cell.
CREATE OR REPLACE FUNCTION open_customer_page(
  p_caller caller, p_account_id text, p_session_id text, p_fingerprint bytea
) RETURNS void
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_proven constant keys := prove(p_caller);
  v_now constant timestamptz := clock_timestamp();
BEGIN
  INSERT INTO page_sessions
      (fingerprint, id, operator_id, operator_name, account_id, is_link, created_at, used_at, user_agent, address)
    VALUES (p_fingerprint, p_session_id, p_caller.id, p_caller.name, p_account_id, true, v_now, v_now, '', '');
END
$$;
