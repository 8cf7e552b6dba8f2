-- Corrects the charge of a generation by an entry of its own, and returns that. The caller holds the lock of the lane, and has checked
-- that the balance covers the amount and that the cause has not corrected this generation. p_refund_micros is the amount that a refund
-- asked for, NULL for a re-rating.
CREATE OR REPLACE FUNCTION adjust_entry(p_entry ledger, p_cause text, p_micros bigint, p_reason text, p_refund_micros bigint)
  RETURNS ledger
  LANGUAGE plpgsql
AS $$
DECLARE
  v_new record;
  v_row ledger;
BEGIN
  v_new := post_movement(p_entry.lane, p_entry.account_id, 'adjustment', p_micros, p_reason, p_entry.id);
  SELECT l.* INTO STRICT v_row FROM ledger l
    WHERE l.lane = p_entry.lane AND l.account_id = p_entry.account_id AND l.id = v_new.id AND l.month = v_new.month;
  INSERT INTO entry_adjustments
    VALUES (v_row.lane, v_row.account_id, p_entry.id, p_cause, v_row.id, v_row.month, p_micros, p_refund_micros);
  PERFORM write_event(v_row.lane, v_row.account_id, 'adjustment.posted', jsonb_build_object('entry_id', v_row.id,
    'amount_micros', p_micros, 'balance_after_micros', v_row.balance_after_micros, 'reason', p_reason));
  RETURN v_row;
END
$$;
