-- Deletes a link of link_person, after the person stopped being a member, or because the account is closed. Who signed up for the account can
-- sign up for another one.
CREATE OR REPLACE FUNCTION unlink_person(p_person_id text, p_account_id text, p_link_id text, p_is_closed boolean) RETURNS void
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
BEGIN
  UPDATE people p SET account_id = NULL WHERE p.id = p_person_id AND p.account_id = p_account_id AND p_link_id = 'sign-up';
  DELETE FROM person_accounts a WHERE a.person_id = p_person_id AND a.account_id = p_account_id AND a.link_id = p_link_id;
  IF p_is_closed THEN
    INSERT INTO closed_accounts (person_id, account_id, closed_at)
      SELECT p.id, p_account_id, clock_timestamp() FROM people p WHERE p.id = p_person_id
      ON CONFLICT DO NOTHING;
  END IF;
END
$$;
