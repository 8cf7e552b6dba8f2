-- The account with this id; refuses when there is none. The caller holds the lane.
CREATE OR REPLACE FUNCTION require_account(p_lane smallint, p_id text) RETURNS accounts
  LANGUAGE plpgsql
AS $$
DECLARE
  v_account accounts;
BEGIN
  SELECT * INTO v_account FROM accounts a WHERE a.lane = p_lane AND a.id = p_id;
  IF NOT FOUND THEN
    PERFORM refuse('not_found', 'There is no such account.');
  END IF;
  RETURN v_account;
END
$$;
