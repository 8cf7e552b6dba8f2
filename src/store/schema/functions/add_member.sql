-- Makes a person a member of an account. The caller holds the lock of the lane.
CREATE OR REPLACE FUNCTION add_member(
  p_lane smallint, p_account_id text, p_person_id text, p_email text, p_role member_role, p_link_id text
) RETURNS void
  LANGUAGE plpgsql
AS $$
DECLARE
  c_max_members constant integer := 100;
BEGIN
  INSERT INTO members (lane, account_id, person_id, email, role, joined_at, link_id)
    VALUES (p_lane, p_account_id, p_person_id, p_email, p_role, clock_timestamp(), p_link_id);
  IF (SELECT count(*) FROM members m WHERE m.lane = p_lane AND m.account_id = p_account_id) > c_max_members THEN
    PERFORM refuse('member_limit_reached', format('An account can have at most %s members.', c_max_members));
  END IF;
  PERFORM write_event(p_lane, p_account_id, 'member.joined', jsonb_build_object('person_id', p_person_id, 'role', p_role));
END
$$;
