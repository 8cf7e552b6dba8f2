-- Corrects the charge of a generation by an entry of its own, and returns its id. The caller holds the lock of the lane, and has checked
-- that the balance covers the amount and that the cause has not corrected this generation.
CREATE OR REPLACE FUNCTION adjust_entry(p_entry ledger, p_cause text, p_micros bigint, p_reason text) RETURNS text
  LANGUAGE plpgsql
AS $$
DECLARE
  v_id constant text := post_movement(p_entry.lane, p_entry.account_id, 'adjustment', p_micros, p_reason, p_entry.id);
  v_row ledger;
BEGIN
  SELECT l.* INTO STRICT v_row FROM ledger l
    WHERE l.lane = p_entry.lane AND l.account_id = p_entry.account_id AND l.id = v_id;
  INSERT INTO entry_adjustments VALUES (p_entry.lane, p_entry.account_id, p_entry.id, p_cause, v_id, v_row.month, p_micros);
  PERFORM write_event(p_entry.lane, p_entry.account_id, 'adjustment.posted', jsonb_build_object('entry_id', v_id,
    'amount_micros', p_micros, 'balance_after_micros', v_row.balance_after_micros, 'reason', p_reason));
  RETURN v_id;
END
$$;
