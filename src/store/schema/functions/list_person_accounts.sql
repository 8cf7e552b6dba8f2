-- The accounts in which the person can be a member.
CREATE OR REPLACE FUNCTION list_person_accounts(p_person_id text) RETURNS TABLE (account_id text)
  LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT
AS $$
BEGIN
  RETURN QUERY SELECT DISTINCT a.account_id FROM person_accounts a WHERE a.person_id = p_person_id ORDER BY a.account_id;
END
$$;
