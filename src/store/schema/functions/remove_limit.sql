-- Removes a limit of an account, a key or a plan, and the counters of an account or key that has no other. Other counters go when their
-- row is used again or swept. The caller holds the lock of the account and marks it. Returns whether there was such a limit.
CREATE OR REPLACE FUNCTION remove_limit(p_lane smallint, p_account_id text, p_owner_id text, p_id text, p_actor text)
  RETURNS boolean
  LANGUAGE plpgsql
AS $$
DECLARE
  v_users integer;
BEGIN
  PERFORM refuse_change_of_limit() FROM limits l
    WHERE l.lane = p_lane AND l.owner_id = p_owner_id AND l.id = p_id AND l.is_of_operator AND p_actor <> 'operator';
  DELETE FROM limits l WHERE l.lane = p_lane AND l.owner_id = p_owner_id AND l.id = p_id;
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  WITH deleted AS (
    DELETE FROM limit_counters c WHERE c.lane = p_lane AND c.account_id = p_account_id AND c.subject_id = p_owner_id
      AND c.plan = '' AND NOT EXISTS (SELECT 1 FROM limits l WHERE l.lane = p_lane AND l.owner_id = p_owner_id)
    RETURNING c.user_id
  )
  SELECT count(*) INTO v_users FROM deleted d WHERE d.user_id <> '';
  IF v_users > 0 THEN
    PERFORM count_users(p_lane, p_account_id, -v_users);
  END IF;
  RETURN true;
END
$$;
