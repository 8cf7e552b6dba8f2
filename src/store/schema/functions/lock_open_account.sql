-- Locks the lane of an account for a change that a closed account does not allow, and returns the account.
CREATE OR REPLACE FUNCTION lock_open_account(p_lane smallint, p_id text) RETURNS accounts
  LANGUAGE plpgsql
AS $$
DECLARE
  v_account constant accounts := lock_account(p_lane, p_id);
BEGIN
  IF v_account.closed_at IS NOT NULL THEN
    PERFORM refuse('invalid_argument', 'is closed, which is final', '{"field":"account_id"}');
  END IF;
  RETURN v_account;
END
$$;
