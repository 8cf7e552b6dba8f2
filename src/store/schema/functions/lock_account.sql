-- Locks the lane of an account and returns the account. Serialises changes of its balance and of its number of keys.
CREATE OR REPLACE FUNCTION lock_account(p_lane smallint, p_id text) RETURNS accounts
  LANGUAGE plpgsql
AS $$
BEGIN
  PERFORM lock_lane(p_lane);
  RETURN require_account(p_lane, p_id);
END
$$;
