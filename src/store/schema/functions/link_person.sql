-- Notes, before the caller becomes a member of an account, that the account is to be looked in for the person.
CREATE OR REPLACE FUNCTION link_person(p_caller caller, p_account_id text, p_link_id text) RETURNS void
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_proven constant keys := prove(p_caller);
  c_max_accounts constant integer := 100;
BEGIN
  -- The lock counts the accounts of a person one after the other.
  PERFORM 1 FROM people p WHERE p.id = p_caller.id FOR UPDATE;
  IF NOT FOUND THEN
    PERFORM refuse('invalid_session');
  END IF;
  IF (SELECT count(DISTINCT a.account_id) FROM person_accounts a
      WHERE a.person_id = p_caller.id AND a.account_id <> p_account_id) >= c_max_accounts THEN
    PERFORM refuse('member_limit_reached', format('A person can be a member of at most %s accounts.', c_max_accounts));
  END IF;
  INSERT INTO person_accounts (person_id, account_id, link_id) VALUES (p_caller.id, p_account_id, p_link_id);
END
$$;
