-- Refuses a person who is no longer a member of the account, or has another role there than the one that the server checked.
CREATE OR REPLACE FUNCTION prove_member(p_caller caller, p_lane smallint) RETURNS void
  LANGUAGE plpgsql
AS $$
DECLARE
  v_role text;
BEGIN
  SELECT m.role INTO v_role FROM members m
    WHERE m.lane = p_lane AND m.account_id = p_caller.account_id AND m.person_id = p_caller.id FOR NO KEY UPDATE;
  IF NOT FOUND THEN
    PERFORM refuse('not_found', 'There is no such account.');
  ELSIF v_role IS DISTINCT FROM p_caller.role THEN
    PERFORM refuse('insufficient_role', 'Your role in the account was changed during the call. Repeat the call.');
  ELSIF NOT p_caller.while_suspended AND EXISTS (
      SELECT 1 FROM accounts a WHERE a.lane = p_lane AND a.id = p_caller.account_id AND a.suspended_at IS NOT NULL) THEN
    PERFORM refuse('account_suspended');
  END IF;
END
$$;
