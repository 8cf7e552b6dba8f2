-- Locks the lane of an account and returns the account. Serialises changes of its balance and of its number of keys.
CREATE OR REPLACE FUNCTION lock_account(p_lane smallint, p_id text) RETURNS accounts
  LANGUAGE plpgsql
AS $$
DECLARE
  v_account accounts;
BEGIN
  PERFORM lock_lane(p_lane);
  SELECT * INTO v_account FROM accounts WHERE lane = p_lane AND id = p_id;
  IF NOT FOUND THEN
    PERFORM refuse('not_found', 'There is no such account.');
  END IF;
  RETURN v_account;
END
$$;
