-- Takes what has expired of the grants of an account from its balance, as far as no running call holds it, each as a ledger row of its
-- own. The caller holds the lock of the lane.
CREATE OR REPLACE FUNCTION expire_grants(p_lane smallint, p_account_id text) RETURNS void
  LANGUAGE plpgsql
AS $$
DECLARE
  v_now constant timestamptz := clock_timestamp();
  v_grant grants;
  v_amount bigint;
  v_entry_id text;
BEGIN
  IF NOT EXISTS (SELECT 1 FROM accounts a WHERE a.lane = p_lane AND a.id = p_account_id AND a.grants_expire_at <= v_now) THEN
    RETURN;
  END IF;
  FOR v_grant IN SELECT g.* FROM grant_rests(p_lane, p_account_id) g WHERE g.expires_at <= v_now AND g.rest_micros > 0 LOOP
    SELECT least(v_grant.rest_micros, a.balance_micros - a.held_micros) INTO STRICT v_amount FROM accounts a
      WHERE a.lane = p_lane AND a.id = p_account_id;
    EXIT WHEN v_amount = 0;
    v_entry_id := (post_movement(p_lane, p_account_id, 'expiry', -v_amount,
      format('Expiry of the credit of ledger row %s', v_grant.seq))).id;
    PERFORM write_event(p_lane, p_account_id, 'grant.expired', jsonb_build_object('entry_id', v_entry_id, 'credit_id', v_grant.entry_id,
        'amount_micros', v_amount, 'balance_after_micros', a.balance_micros, 'expires_at', v_grant.expires_at))
      FROM accounts a WHERE a.lane = p_lane AND a.id = p_account_id;
  END LOOP;
  PERFORM spend_grants(p_lane, p_account_id);
END
$$;
