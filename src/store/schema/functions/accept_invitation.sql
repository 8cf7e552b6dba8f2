-- Uses an invitation up and makes the caller a member with its role, with the link that was stored before. Returns whether the caller has
-- joined: somebody who is a member already keeps the invitation.
CREATE OR REPLACE FUNCTION accept_invitation(
  p_caller caller, p_lane smallint, p_account_id text, p_id text, p_fingerprint bytea, p_email text, p_link_id text
) RETURNS TABLE (has_joined boolean)
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_proven constant keys := prove(p_caller, p_lane);
  v_invitation invitations;
BEGIN
  PERFORM require_open_account(p_lane, p_account_id);
  PERFORM 1 FROM members m WHERE m.lane = p_lane AND m.account_id = p_account_id AND m.person_id = p_caller.id;
  IF FOUND THEN
    RETURN QUERY SELECT false;
    RETURN;
  END IF;
  DELETE FROM invitations i WHERE i.lane = p_lane AND i.id = p_id AND i.account_id = p_account_id AND i.fingerprint = p_fingerprint
      AND i.expires_at > clock_timestamp() AND lower(i.email COLLATE "C") IN ('', lower(p_email COLLATE "C"))
    RETURNING i.* INTO v_invitation;
  -- An operator who created it keeps the right until the member is committed. The lane keeps that of an owner.
  PERFORM 1 FROM operators o WHERE o.id = v_invitation.created_by FOR SHARE;
  IF v_invitation.id IS NULL OR NOT may_invite(p_lane, p_account_id, v_invitation.created_by, v_invitation.role) THEN
    PERFORM refuse('invalid_invitation');
  END IF;
  PERFORM add_member(p_lane, p_account_id, p_caller.id, p_email, v_invitation.role, p_link_id);
  PERFORM log_change(p_caller, p_lane, p_caller.id, p_account_id);
  RETURN QUERY SELECT true;
END
$$;
