-- Changes the role of a member.
CREATE OR REPLACE FUNCTION set_member_role(p_caller caller, p_lane smallint, p_account_id text, p_person_id text, p_role text)
  RETURNS TABLE (person_id text, email text, role text, joined_at timestamptz)
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
BEGIN
  PERFORM prove(p_caller, p_lane);
  PERFORM require_account(p_lane, p_account_id);
  IF p_role <> 'owner' THEN
    PERFORM take_owner_role(p_lane, p_account_id, p_person_id);
  END IF;
  IF p_role NOT IN ('developer', 'owner') THEN
    PERFORM revoke_playground_key(p_lane, p_account_id, p_person_id);
  END IF;
  PERFORM log_change(p_caller, p_lane, p_person_id, p_account_id);
  UPDATE members m SET role = p_role::member_role
    WHERE m.lane = p_lane AND m.account_id = p_account_id AND m.person_id = p_person_id;
  IF NOT FOUND THEN
    PERFORM refuse('not_found', 'There is no such member.');
  END IF;
  RETURN QUERY SELECT m.person_id, m.email, m.role::text, m.joined_at FROM members m
    WHERE m.lane = p_lane AND m.account_id = p_account_id AND m.person_id = p_person_id;
END
$$;
