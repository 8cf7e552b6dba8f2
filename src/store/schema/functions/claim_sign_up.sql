-- The account for which a person signs up: p_account_id, or the one that an earlier call chose. It gets the starting credit if neither the
-- identity nor the address of the person was used for another one. Not NULL, p_invitation_id names the invitation that is used up.
CREATE OR REPLACE FUNCTION claim_sign_up(p_person_id text, p_account_id text, p_invitation_id text, p_fingerprint bytea)
  RETURNS TABLE (account_id text, gets_credit boolean)
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_person people;
  v_digests bytea[];
BEGIN
  SELECT p.* INTO v_person FROM people p WHERE p.id = p_person_id FOR UPDATE;
  IF NOT FOUND THEN
    PERFORM refuse('invalid_session');
  END IF;
  IF v_person.account_id IS NULL THEN
    IF p_invitation_id IS NOT NULL THEN
      UPDATE sign_up_invitations i SET person_id = p_person_id
        WHERE i.id = p_invitation_id AND i.fingerprint = p_fingerprint AND i.person_id IS NULL
          AND i.expires_at > clock_timestamp() AND lower(i.email COLLATE "C") IN ('', lower(v_person.email COLLATE "C"));
      IF NOT FOUND THEN
        PERFORM refuse('invalid_invitation');
      END IF;
    END IF;
    UPDATE people p SET account_id = p_account_id WHERE p.id = p_person_id RETURNING p.* INTO v_person;
    PERFORM link_person(p_person_id, p_account_id);
  END IF;
  v_digests := ARRAY[
    sha256(convert_to(v_person.issuer || E'\n' || v_person.subject, 'UTF8')),
    -- Without "+tag": such addresses belong to one mailbox, and a person can have any number of them.
    sha256(convert_to(regexp_replace(lower(v_person.email COLLATE "C"), '\+.*@', '@'), 'UTF8'))];
  INSERT INTO starting_credits (digest, account_id) SELECT d, v_person.account_id FROM unnest(v_digests) d
    ORDER BY d ON CONFLICT DO NOTHING;
  RETURN QUERY SELECT v_person.account_id, NOT EXISTS (
    SELECT 1 FROM starting_credits c WHERE c.digest = ANY (v_digests) AND c.account_id <> v_person.account_id);
END
$$;
