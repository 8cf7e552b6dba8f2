-- The account with this id, or the account that owns the key, ledger entry, top-up, webhook, event or failed call with this id. p_month
-- is the month of the ledger entry.
CREATE OR REPLACE FUNCTION account_with(p_lane smallint, p_id text, p_month integer) RETURNS SETOF account_views
  LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path FROM CURRENT
  SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
  v_account_id text := p_id;
BEGIN
  CASE substring(p_id FROM '^([a-z]+)_')
    WHEN 'key' THEN
      SELECT k.account_id INTO v_account_id FROM keys k WHERE k.lane = p_lane AND k.id = p_id;
    WHEN 'led' THEN
      SELECT l.account_id INTO v_account_id FROM ledger l WHERE l.lane = p_lane AND l.id = p_id AND l.month = p_month;
    WHEN 'top' THEN
      SELECT t.account_id INTO v_account_id FROM topups t WHERE t.lane = p_lane AND t.id = p_id;
    WHEN 'wh' THEN
      SELECT w.account_id INTO v_account_id FROM webhooks w WHERE w.lane = p_lane AND w.id = p_id;
    WHEN 'evt' THEN
      SELECT e.account_id INTO v_account_id FROM events e WHERE e.lane = p_lane AND e.id = p_id;
    WHEN 'fail' THEN
      -- By the accounts of the lane: failed calls have no index by their ids alone.
      SELECT f.account_id INTO v_account_id FROM accounts a
      JOIN failures f ON f.lane = a.lane AND f.account_id = a.id AND f.id = p_id WHERE a.lane = p_lane;
    ELSE
      NULL;
  END CASE;
  RETURN QUERY SELECT a.* FROM account_views a WHERE a.lane = p_lane AND a.id = v_account_id;
END
$$;
