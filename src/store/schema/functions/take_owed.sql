-- Takes what an account owes for reversed payments from its balance, as far as no running call holds it. p_reason describes the ledger
-- row; empty for a later payment of what is owed. The caller holds the lock of the lane.
CREATE OR REPLACE FUNCTION take_owed(p_lane smallint, p_account_id text, p_reason text) RETURNS void
  LANGUAGE plpgsql
AS $$
DECLARE
  v_taken bigint;
BEGIN
  SELECT least(a.owed_micros, a.balance_micros - a.held_micros) INTO STRICT v_taken FROM accounts a
    WHERE a.lane = p_lane AND a.id = p_account_id;
  IF v_taken > 0 THEN
    UPDATE accounts SET owed_micros = owed_micros - v_taken WHERE lane = p_lane AND id = p_account_id;
    PERFORM post_movement(p_lane, p_account_id, 'refund', -v_taken, coalesce(nullif(p_reason, ''), 'Paid what was owed for reversed payments'));
  END IF;
END
$$;
