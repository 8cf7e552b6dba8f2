-- The reverse of link_person, after the person stopped being a member.
CREATE OR REPLACE FUNCTION unlink_person(p_person_id text, p_account_id text) RETURNS void
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
BEGIN
  DELETE FROM person_accounts a WHERE a.person_id = p_person_id AND a.account_id = p_account_id;
END
$$;
