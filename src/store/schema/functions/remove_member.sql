-- Removes a member, the key of the playground, the invitations that the person created, and those for the address of the person. Does nothing
-- if the person is not a member. Returns the link of the member, which the first cell deletes: in this transaction if it has the account.
CREATE OR REPLACE FUNCTION remove_member(p_caller caller, p_lane smallint, p_account_id text, p_person_id text)
  RETURNS TABLE (link_id text)
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_proven constant keys := prove(p_caller, p_lane);
  v_member members;
BEGIN
  PERFORM require_account(p_lane, p_account_id);
  SELECT m.* INTO v_member FROM members m WHERE m.lane = p_lane AND m.account_id = p_account_id AND m.person_id = p_person_id;
  IF NOT FOUND THEN
    RETURN;
  END IF;
  PERFORM revoke_playground_key(p_lane, p_account_id, p_person_id);
  PERFORM take_owner_role(p_lane, p_account_id, p_person_id);
  PERFORM write_event(p_lane, p_account_id, 'member.removed', jsonb_build_object('person_id', p_person_id));
  PERFORM log_change(p_caller, p_lane, p_person_id, p_account_id);
  DELETE FROM members m WHERE m.lane = p_lane AND m.account_id = p_account_id AND m.person_id = p_person_id;
  DELETE FROM invitations i WHERE i.lane = p_lane AND i.account_id = p_account_id AND i.email <> ''
    AND mailbox_of(i.email) = mailbox_of(v_member.email);
  PERFORM unlink_person(p_person_id, p_account_id, v_member.link_id, false);
  RETURN QUERY SELECT v_member.link_id;
END
$$;
