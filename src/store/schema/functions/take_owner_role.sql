-- Prepares a change that takes the role of an owner: refuses it for the last one, and deletes the invitations that the person made, because
-- only owners invite. The caller has locked the account.
CREATE OR REPLACE FUNCTION take_owner_role(p_lane smallint, p_account_id text, p_person_id text) RETURNS void
  LANGUAGE plpgsql
AS $$
DECLARE
  v_owners constant text[] := ARRAY(
    SELECT m.person_id FROM members m WHERE m.lane = p_lane AND m.account_id = p_account_id AND m.role = 'owner');
BEGIN
  IF v_owners = ARRAY[p_person_id] THEN
    PERFORM refuse('last_owner');
  END IF;
  DELETE FROM invitations i WHERE i.lane = p_lane AND i.account_id = p_account_id AND i.created_by = p_person_id;
END
$$;
