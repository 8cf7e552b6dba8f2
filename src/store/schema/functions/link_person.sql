-- Notes, before a person becomes a member of an account, that the account is to be looked in for the person.
CREATE OR REPLACE FUNCTION link_person(p_person_id text, p_account_id text) RETURNS void
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  c_max_accounts constant integer := 100;
BEGIN
  -- The lock counts the accounts of a person one after the other.
  PERFORM 1 FROM people p WHERE p.id = p_person_id FOR UPDATE;
  IF NOT FOUND THEN
    PERFORM refuse('invalid_session');
  END IF;
  IF (SELECT count(*) FROM person_accounts a WHERE a.person_id = p_person_id AND a.account_id <> p_account_id) >= c_max_accounts THEN
    PERFORM refuse('member_limit_reached', format('A person can be a member of at most %s accounts.', c_max_accounts));
  END IF;
  INSERT INTO person_accounts (person_id, account_id) VALUES (p_person_id, p_account_id) ON CONFLICT DO NOTHING;
END
$$;
