-- Makes a person a member of an account. A repetition changes nothing.
CREATE OR REPLACE FUNCTION add_member(
  p_caller caller, p_lane smallint, p_account_id text, p_person_id text, p_email text, p_role text
) RETURNS void
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  c_max_members constant integer := 100;
BEGIN
  PERFORM prove(p_caller, p_lane);
  PERFORM lock_open_account(p_lane, p_account_id);
  INSERT INTO members (lane, account_id, person_id, email, role, joined_at)
    VALUES (p_lane, p_account_id, p_person_id, p_email, p_role::member_role, clock_timestamp()) ON CONFLICT DO NOTHING;
  IF NOT FOUND THEN
    RETURN;
  END IF;
  IF (SELECT count(*) FROM members m WHERE m.lane = p_lane AND m.account_id = p_account_id) > c_max_members THEN
    PERFORM refuse('member_limit_reached', format('An account can have at most %s members.', c_max_members));
  END IF;
  PERFORM write_event(p_lane, p_account_id, 'member.joined', jsonb_build_object('person_id', p_person_id, 'role', p_role));
  -- The log has the sign-up, which the server completes.
  IF p_caller.kind <> 'server' THEN
    PERFORM log_change(p_caller, p_lane, p_person_id, p_account_id);
  END IF;
END
$$;
