-- Makes the credit that was just posted to an account a grant. The caller holds the lock of the lane.
CREATE OR REPLACE FUNCTION add_grant(
  p_lane smallint, p_account_id text, p_entry_id text, p_seq bigint, p_micros bigint, p_expires_at timestamptz, p_is_promotional boolean
) RETURNS void
  LANGUAGE plpgsql
AS $$
DECLARE
  c_max_grants constant integer := 100;
BEGIN
  -- Charges before take nothing from the new grant.
  PERFORM spend_grants(p_lane, p_account_id);
  IF p_expires_at <= clock_timestamp() THEN
    PERFORM refuse('invalid_argument', 'must be in the future', '{"field":"expires_at"}');
  ELSIF c_max_grants <= (SELECT count(*) FROM grants g
      WHERE g.lane = p_lane AND g.account_id = p_account_id AND g.rest_micros > 0) THEN
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
