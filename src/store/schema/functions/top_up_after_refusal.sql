-- Starts an automatic top-up after a call was refused, if less than the threshold is free.
CREATE OR REPLACE FUNCTION top_up_after_refusal(p_lane smallint, p_account_id text) RETURNS void
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_account constant accounts := lock_account(p_lane, p_account_id);
  v_expired constant bigint := expired_credit(p_lane, p_account_id, clock_timestamp());
BEGIN
  IF v_account.balance_micros - v_expired - v_account.held_micros < v_account.auto_topup_below_micros THEN
    PERFORM start_auto_topup(p_lane, p_account_id);
  END IF;
END
$$;
