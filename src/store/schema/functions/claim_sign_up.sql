-- The account for which the caller signs up: p_account_id, or the one that an earlier call chose. It gets the starting credit if neither
-- the identity nor the mailbox of the person was used for another one. Not NULL, p_invitation_id names the invitation that is used up: it is
-- void if the operator who created it has not p_inviter_role any more.
CREATE OR REPLACE FUNCTION claim_sign_up(
  p_caller caller, p_account_id text, p_invitation_id text, p_fingerprint bytea, p_inviter_role text
) RETURNS TABLE (account_id text, gets_credit boolean)
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_proven constant keys := prove(p_caller);
  c_max_sign_ups constant integer := 3;
  v_now constant timestamptz := clock_timestamp();
  v_person people;
  v_inviter text;
  v_digests bytea[];
BEGIN
  SELECT p.* INTO v_person FROM people p WHERE p.id = p_caller.id FOR UPDATE;
  IF NOT FOUND THEN
    PERFORM refuse('invalid_session');
  END IF;
  v_digests := ARRAY[
    sha256(convert_to(v_person.issuer || E'\n' || v_person.subject, 'UTF8')),
    sha256(convert_to(mailbox_of(v_person.email), 'UTF8'))];
  IF v_person.account_id IS NULL THEN
    IF p_invitation_id IS NOT NULL THEN
      UPDATE sign_up_invitations i SET person_id = p_caller.id
        WHERE i.id = p_invitation_id AND i.fingerprint = p_fingerprint AND i.person_id IS NULL
          AND i.expires_at > v_now AND lower(i.email COLLATE "C") IN ('', lower(v_person.email COLLATE "C"))
        RETURNING i.created_by INTO v_inviter;
      PERFORM 1 FROM operators o
        WHERE o.id = v_inviter AND o.revoked_at IS NULL AND o.role >= p_inviter_role::operator_role FOR SHARE;
      IF NOT FOUND AND v_inviter IS DISTINCT FROM 'break-glass' THEN
        PERFORM refuse('invalid_invitation');
      END IF;
    END IF;
    UPDATE people p SET account_id = p_account_id WHERE p.id = p_caller.id RETURNING p.* INTO v_person;
    PERFORM link_person(p_caller, p_account_id, 'sign-up');
    INSERT INTO starting_credits AS c (digest, account_id, sign_ups)
      SELECT d, p_account_id, ARRAY[v_now] FROM unnest(v_digests) d ORDER BY d
      ON CONFLICT ON CONSTRAINT starting_credits_pkey DO UPDATE
        SET sign_ups = ARRAY(SELECT t FROM unnest(c.sign_ups) t WHERE t > v_now - interval '30 days') || v_now;
    IF EXISTS (SELECT 1 FROM starting_credits c WHERE c.digest = ANY (v_digests) AND cardinality(c.sign_ups) > c_max_sign_ups) THEN
      PERFORM refuse('sign_up_refused', format('A person can sign up for at most %s accounts in 30 days.', c_max_sign_ups));
    END IF;
  END IF;
  RETURN QUERY SELECT v_person.account_id, NOT EXISTS (
    SELECT 1 FROM starting_credits c WHERE c.digest = ANY (v_digests) AND c.account_id <> v_person.account_id);
END
$$;
