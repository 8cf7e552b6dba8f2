-- Creates the link with which an operator views the page of an account, in the first cell.
CREATE OR REPLACE FUNCTION open_customer_page(
  p_operator_id text, p_operator_name text, p_account_id text, p_session_id text, p_fingerprint bytea
) RETURNS void
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_now constant timestamptz := clock_timestamp();
BEGIN
  INSERT INTO page_sessions
      (fingerprint, id, operator_id, operator_name, account_id, is_link, created_at, used_at, user_agent, address)
    VALUES (p_fingerprint, p_session_id, p_operator_id, p_operator_name, p_account_id, true, v_now, v_now, '', '');
END
$$;
