-- Creates an invitation to an account.
CREATE OR REPLACE FUNCTION create_invitation(
  p_caller caller, p_lane smallint, p_account_id text, p_id text, p_fingerprint bytea, p_role text, p_email text
) RETURNS SETOF invitations
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_proven constant keys := prove(p_caller, p_lane);
  c_max_invitations constant integer := 50;
  v_now constant timestamptz := clock_timestamp();
BEGIN
  PERFORM require_open_account(p_lane, p_account_id);
  IF NOT may_invite(p_lane, p_account_id, p_caller.id, p_role::member_role) THEN
    PERFORM refuse('insufficient_role',
      'The role support invites viewers and developers, finance also members with the role billing, and admin also owners.');
  END IF;
  DELETE FROM invitations i WHERE i.lane = p_lane AND i.account_id = p_account_id
    AND (i.expires_at <= v_now OR NOT may_invite(p_lane, p_account_id, i.created_by, i.role));
  IF (SELECT count(*) FROM invitations i WHERE i.lane = p_lane AND i.account_id = p_account_id) >= c_max_invitations THEN
    PERFORM refuse('member_limit_reached', format('An account can have at most %s open invitations.', c_max_invitations));
  END IF;
  PERFORM write_event(p_lane, p_account_id, 'member.invited', jsonb_build_object('invitation_id', p_id, 'role', p_role));
  PERFORM log_change(p_caller, p_lane, p_id, p_account_id);
  RETURN QUERY INSERT INTO invitations (lane, id, account_id, fingerprint, role, email, created_by, created_at, expires_at)
    VALUES (p_lane, p_id, p_account_id, p_fingerprint, p_role::member_role, p_email, (p_caller).id, v_now,
      v_now + interval '7 days') RETURNING *;
END
$$;
