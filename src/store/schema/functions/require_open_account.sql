-- The account, for a change that a closed account does not allow. The caller holds the lane.
CREATE OR REPLACE FUNCTION require_open_account(p_lane smallint, p_id text) RETURNS accounts
  LANGUAGE plpgsql
AS $$
DECLARE
  v_account constant accounts := require_account(p_lane, p_id);
BEGIN
  IF v_account.closed_at IS NOT NULL THEN
    PERFORM refuse('invalid_argument', 'is closed, which is final', '{"field":"account_id"}');
  END IF;
  RETURN v_account;
END
$$;
