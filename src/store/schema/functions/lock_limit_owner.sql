-- Locks the account of an owner of limits and returns its id: empty for a plan, which belongs to no account.
CREATE OR REPLACE FUNCTION lock_limit_owner(p_lane smallint, p_owner_id text) RETURNS text
  LANGUAGE plpgsql
AS $$
DECLARE
  v_account_id text;
BEGIN
  IF p_lane = no_lane() THEN
    PERFORM 1 FROM plans p WHERE p.name = p_owner_id FOR UPDATE;
    IF NOT FOUND THEN
      PERFORM refuse('not_found', 'There is no such plan.');
    END IF;
    RETURN '';
  END IF;
  SELECT k.account_id INTO v_account_id FROM keys k WHERE k.lane = p_lane AND k.id = p_owner_id;
  v_account_id := coalesce(v_account_id, p_owner_id);
  PERFORM require_open_account(p_lane, v_account_id);
  RETURN v_account_id;
END
$$;
