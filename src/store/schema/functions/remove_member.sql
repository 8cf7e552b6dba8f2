-- Removes a member, the invitations of that person, and the key of the playground. Does nothing if the person is not a member.
CREATE OR REPLACE FUNCTION remove_member(p_caller caller, p_lane smallint, p_account_id text, p_person_id text) RETURNS void
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
BEGIN
  PERFORM prove(p_caller, p_lane);
  PERFORM lock_account(p_lane, p_account_id);
  PERFORM 1 FROM members m WHERE m.lane = p_lane AND m.account_id = p_account_id AND m.person_id = p_person_id;
  IF NOT FOUND THEN
    RETURN;
  END IF;
  PERFORM revoke_playground_key(p_lane, p_account_id, p_person_id);
  PERFORM take_owner_role(p_lane, p_account_id, p_person_id);
  PERFORM write_event(p_lane, p_account_id, 'member.removed', jsonb_build_object('person_id', p_person_id));
  -- Before the row is deleted: members may remove themselves.
  PERFORM log_change(p_caller, p_lane, p_person_id, p_account_id);
  DELETE FROM members m WHERE m.lane = p_lane AND m.account_id = p_account_id AND m.person_id = p_person_id;
END
$$;
