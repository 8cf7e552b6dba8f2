-- Grants: credit that expires or is promotional, in the order in which charges take it.

-- The balance, the held amount and the unspent grants of an account, from one snapshot. Grants are in the order in which charges
-- take them; one row without a grant if there are none.
-- null: entry_id, amount_micros, rest_micros, expires_at, is_promotional
CREATE OR REPLACE FUNCTION account_grants(p_lane smallint, p_account_id text)
  RETURNS TABLE (
    balance_micros bigint, held_micros bigint,
    entry_id text, amount_micros bigint, rest_micros bigint, expires_at timestamptz, is_promotional boolean)
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT
AS $$
  SELECT a.balance_micros, a.held_micros,
      g.entry_id, g.amount_micros, g.rest_micros, nullif(g.expires_at, 'infinity'), g.is_promotional
    FROM accounts a LEFT JOIN grant_rests(p_lane, p_account_id) g ON g.rest_micros > 0
    WHERE a.lane = p_lane AND a.id = p_account_id
    ORDER BY g.expires_at, g.seq
$$;

-- The remaining amounts of the grants of an account, in the order in which charges take them: rest_micros as it was last written,
-- minus what charges have taken since then. Grants of which nothing was left then are not returned.
CREATE OR REPLACE FUNCTION grant_rests(p_lane smallint, p_account_id text) RETURNS SETOF grants
  LANGUAGE sql STABLE
AS $$
  SELECT g.lane, g.account_id, g.expires_at, g.seq, g.entry_id, g.amount_micros,
    g.rest_micros - least(g.rest_micros, greatest(0, a.grants_spent_micros + g.rest_micros - sum(g.rest_micros) OVER until))::bigint,
    g.is_promotional
  FROM accounts a JOIN grants g ON g.lane = a.lane AND g.account_id = a.id
  -- The grants before have nothing left.
  WHERE a.lane = p_lane AND a.id = p_account_id AND g.expires_at >= coalesce(a.grants_expire_at, '-infinity') AND g.rest_micros > 0
  WINDOW until AS (ORDER BY g.expires_at, g.seq)
  ORDER BY g.expires_at, g.seq
$$;

-- Makes the credit that was just posted to an account a grant. The caller holds the lock of the lane.
CREATE OR REPLACE FUNCTION add_grant(
  p_lane smallint, p_account_id text, p_entry_id text, p_seq bigint, p_micros bigint, p_expires_at timestamptz, p_is_promotional boolean
) RETURNS void
  LANGUAGE plpgsql
AS $$
BEGIN
  -- Charges before take nothing from the new grant.
  PERFORM spend_grants(p_lane, p_account_id);
  IF p_expires_at <= clock_timestamp() THEN
    PERFORM refuse('invalid_argument', 'must be in the future', '{"field":"expires_at"}');
  ELSIF (SELECT count(*) FROM grants g WHERE g.lane = p_lane AND g.account_id = p_account_id AND g.rest_micros > 0) >= 100 THEN
    PERFORM refuse('invalid_argument', 'the account has 100 credits that expire or are promotional, which is the maximum',
      '{"field":"expires_at"}');
  END IF;
  INSERT INTO grants (lane, account_id, expires_at, seq, entry_id, amount_micros, rest_micros, is_promotional)
    VALUES (p_lane, p_account_id, p_expires_at, p_seq, p_entry_id, p_micros, p_micros, p_is_promotional);
  UPDATE accounts a SET grants_expire_at = least(a.grants_expire_at, p_expires_at) WHERE a.lane = p_lane AND a.id = p_account_id;
  -- What the account owed was paid from the credit.
  PERFORM spend_grants(p_lane, p_account_id);
END
$$;

-- Writes the remaining amounts of the grants of an account. If the grants exceed the balance, a debit other than a charge has
-- taken the difference, which is subtracted from the grants that expire last. The caller holds the lock of the lane.
CREATE OR REPLACE FUNCTION spend_grants(p_lane smallint, p_account_id text) RETURNS void
  LANGUAGE plpgsql
AS $$
DECLARE
  v_balance constant bigint := (SELECT a.balance_micros FROM accounts a WHERE a.lane = p_lane AND a.id = p_account_id);
BEGIN
  UPDATE grants g SET rest_micros = n.rest
    FROM (SELECT r.expires_at, r.seq, r.rest_micros - least(r.rest_micros, greatest(0, r.excess - r.behind)) AS rest
      FROM (SELECT i.*, sum(i.rest_micros) OVER () - v_balance AS excess,
          sum(i.rest_micros) OVER (ORDER BY i.expires_at DESC, i.seq DESC) - i.rest_micros AS behind
        FROM grant_rests(p_lane, p_account_id) i) r) n
    WHERE g.lane = p_lane AND g.account_id = p_account_id AND g.expires_at = n.expires_at AND g.seq = n.seq AND g.rest_micros <> n.rest;
  UPDATE accounts a SET grants_spent_micros = 0, grants_expire_at = (SELECT min(g.expires_at) FROM grants g
      WHERE g.lane = p_lane AND g.account_id = p_account_id AND g.expires_at >= a.grants_expire_at AND g.rest_micros > 0)
    WHERE a.lane = p_lane AND a.id = p_account_id;
END
$$;

-- Accounts with free credit that has expired, at most p_limit.
CREATE OR REPLACE FUNCTION accounts_to_expire(p_limit integer) RETURNS TABLE (lane smallint, id text)
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT
  SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
  SELECT a.lane, a.id FROM accounts a JOIN lanes l ON l.lane = a.lane AND l.is_owned
    WHERE a.grants_expire_at <= clock_timestamp() AND a.balance_micros > a.held_micros ORDER BY a.grants_expire_at LIMIT p_limit
$$;

-- Takes what has expired from the balance of an account.
CREATE OR REPLACE FUNCTION expire_account_grants(p_lane smallint, p_id text) RETURNS void
  LANGUAGE sql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
  SELECT lock_account(p_lane, p_id);
  SELECT expire_grants(p_lane, p_id);
$$;

-- Takes what has expired of the grants of an account from its balance, as far as no running call holds it, each as a ledger row
-- of its own. The caller holds the lock of the lane.
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

-- What has expired of the grants of an account and is still in its balance.
CREATE OR REPLACE FUNCTION expired_credit(p_lane smallint, p_account_id text, p_at timestamptz) RETURNS bigint
  LANGUAGE sql STABLE
AS $$
  SELECT coalesce(sum(r.rest_micros), 0)::bigint FROM grant_rests(p_lane, p_account_id) r WHERE r.expires_at <= p_at
$$;
