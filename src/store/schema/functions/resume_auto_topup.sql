-- Lets automatic top-ups start again after their month is over.
CREATE OR REPLACE FUNCTION resume_auto_topup(p_lane smallint, p_account_id text) RETURNS void
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
BEGIN
  PERFORM lock_account(p_lane, p_account_id);
  PERFORM arm_auto_topup(p_lane, p_account_id, true);
END
$$;
