-- The ledger row that an idempotency key of a credit, an adjustment or a refund wrote; NULL if it wrote none. The caller holds the lock
-- of the lane, and refuses a request that differs from the row.
CREATE OR REPLACE FUNCTION movement_of_key(p_lane smallint, p_account_id text, p_idempotency_key text) RETURNS ledger
  LANGUAGE plpgsql STABLE
AS $$
DECLARE
  v_key movement_keys;
  v_row ledger;
BEGIN
  SELECT m.* INTO v_key FROM movement_keys m
    WHERE m.lane = p_lane AND m.account_id = p_account_id AND m.idempotency_key = p_idempotency_key;
  IF NOT FOUND THEN
    RETURN NULL;
  END IF;
  SELECT l.* INTO v_row FROM ledger l
    WHERE l.lane = p_lane AND l.account_id = p_account_id AND l.seq = v_key.seq AND l.month = v_key.month;
  IF NOT FOUND THEN
    PERFORM refuse('idempotency_key_reused', format('This idempotency key was used for ledger row %s, which is archived.', v_key.seq));
  END IF;
  RETURN v_row;
END
$$;
