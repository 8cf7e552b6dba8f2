-- Forgets the customer of a closed account, after the payment provider deleted it.
CREATE OR REPLACE FUNCTION forget_customer(p_lane smallint, p_account_id text, p_customer_id text) RETURNS void
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
BEGIN
  PERFORM lock_account(p_lane, p_account_id);
  UPDATE auto_topups s SET customer_id = NULL
    WHERE s.lane = p_lane AND s.account_id = p_account_id AND s.customer_id = p_customer_id;
END
$$;
