-- The open invitations of an account, the newest first.
CREATE OR REPLACE FUNCTION list_invitations(p_lane smallint, p_account_id text) RETURNS SETOF invitations
  LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT
AS $$
BEGIN
  RETURN QUERY SELECT i.* FROM invitations i
    WHERE i.lane = p_lane AND i.account_id = p_account_id AND i.expires_at > clock_timestamp()
      AND may_invite(p_lane, p_account_id, i.created_by, i.role)
    ORDER BY i.created_at DESC;
END
$$;
