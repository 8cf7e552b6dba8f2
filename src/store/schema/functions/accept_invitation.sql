-- Uses an invitation up and makes the person a member with its role. Somebody who is a member already keeps the invitation.
CREATE OR REPLACE FUNCTION accept_invitation(
  p_caller caller, p_lane smallint, p_account_id text, p_id text, p_fingerprint bytea, p_person_id text, p_email text
) RETURNS void
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_caller constant caller := prove(p_caller, p_lane);
  v_role text;
BEGIN
  PERFORM lock_open_account(p_lane, p_account_id);
  PERFORM 1 FROM members m WHERE m.lane = p_lane AND m.account_id = p_account_id AND m.person_id = p_person_id;
  IF FOUND THEN
    RETURN;
  END IF;
  DELETE FROM invitations i WHERE i.lane = p_lane AND i.id = p_id AND i.account_id = p_account_id AND i.fingerprint = p_fingerprint
      AND i.expires_at > clock_timestamp() AND lower(i.email COLLATE "C") IN ('', lower(p_email COLLATE "C"))
    RETURNING i.role::text INTO v_role;
  IF NOT FOUND THEN
    PERFORM refuse('invalid_invitation');
  END IF;
  PERFORM add_member(p_caller, p_lane, p_account_id, p_person_id, p_email, v_role);
END
$$;
