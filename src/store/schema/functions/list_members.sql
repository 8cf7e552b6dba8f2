-- The members of an account, in the order in which they joined.
CREATE OR REPLACE FUNCTION list_members(p_lane smallint, p_account_id text)
  RETURNS TABLE (person_id text, email text, role text, joined_at timestamptz, link_id text)
  LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT
AS $$
BEGIN
  RETURN QUERY SELECT m.person_id, m.email, m.role::text, m.joined_at, m.link_id FROM members m
    WHERE m.lane = p_lane AND m.account_id = p_account_id ORDER BY m.joined_at, m.person_id;
END
$$;
