-- Takes from the grants of an account what entries have taken from its balance. p_balance is the balance before them. Charges and
-- expiries take from the grants that expire first; of other entries, from those that expire last, what exceeds the balance. The caller
-- holds the lock of the lane and has written the balance.
CREATE OR REPLACE FUNCTION spend_grants_in_turn(p_lane smallint, p_account_id text, p_balance bigint, p_kind entry_kind) RETURNS void
  LANGUAGE plpgsql
AS $$
DECLARE
  v_spent bigint;
  v_balance bigint;
  v_from timestamptz;
  v_next timestamptz;
BEGIN
  SELECT a.balance_micros, a.grants_expire_at INTO STRICT v_balance, v_from FROM accounts a
    WHERE a.lane = p_lane AND a.id = p_account_id;
  IF p_kind IN ('generation', 'expiry') THEN
    v_spent := p_balance - v_balance;
    UPDATE grants g SET rest_micros = g.rest_micros - least(g.rest_micros, v_spent - r.before)
      FROM (SELECT o.expires_at, o.seq, sum(o.rest_micros) OVER (ORDER BY o.expires_at, o.seq) - o.rest_micros AS before FROM grants o
        WHERE o.lane = p_lane AND o.account_id = p_account_id AND o.expires_at >= v_from AND o.rest_micros > 0) r
      WHERE g.lane = p_lane AND g.account_id = p_account_id AND g.expires_at = r.expires_at AND g.seq = r.seq AND r.before < v_spent;
  ELSE
    v_spent := (SELECT sum(o.rest_micros) FROM grants o
      WHERE o.lane = p_lane AND o.account_id = p_account_id AND o.expires_at >= v_from) - v_balance;
    UPDATE grants g SET rest_micros = g.rest_micros - least(g.rest_micros, v_spent - r.before)
      FROM (SELECT o.expires_at, o.seq, sum(o.rest_micros) OVER (ORDER BY o.expires_at DESC, o.seq DESC) - o.rest_micros AS before
        FROM grants o WHERE o.lane = p_lane AND o.account_id = p_account_id AND o.expires_at >= v_from AND o.rest_micros > 0) r
      WHERE g.lane = p_lane AND g.account_id = p_account_id AND g.expires_at = r.expires_at AND g.seq = r.seq AND r.before < v_spent;
  END IF;
  SELECT min(g.expires_at) INTO v_next FROM grants g
    WHERE g.lane = p_lane AND g.account_id = p_account_id AND g.expires_at >= v_from AND g.rest_micros > 0;
  IF v_next IS DISTINCT FROM v_from THEN
    UPDATE accounts a SET grants_expire_at = v_next WHERE a.lane = p_lane AND a.id = p_account_id;
  END IF;
END
$$;
