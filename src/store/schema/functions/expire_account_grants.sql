-- Takes what has expired from the balance of an account.
CREATE OR REPLACE FUNCTION expire_account_grants(p_lane smallint, p_id text) RETURNS void
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
BEGIN
  PERFORM lock_account(p_lane, p_id);
  PERFORM expire_grants(p_lane, p_id);
END
$$;
