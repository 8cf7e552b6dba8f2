-- The account of an invitation that the person can use; nothing otherwise.
CREATE OR REPLACE FUNCTION read_invitation(p_lane smallint, p_id text, p_fingerprint bytea, p_email text)
  RETURNS TABLE (account_id text)
  LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT
AS $$
BEGIN
  RETURN QUERY SELECT i.account_id FROM invitations i
    WHERE i.lane = p_lane AND i.id = p_id AND i.fingerprint = p_fingerprint AND i.expires_at > clock_timestamp()
      AND lower(i.email COLLATE "C") IN ('', lower(p_email COLLATE "C"))
      AND may_invite(p_lane, i.account_id, i.created_by, i.role);
END
$$;
