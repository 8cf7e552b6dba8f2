-- Gives back a part of the charge of a generation; all that is left of it if p_micros is 0. The same cause does it once, and
-- returns the entry of the refund.
CREATE OR REPLACE FUNCTION refund_entry(
  p_act text, p_lane smallint, p_account_id text, p_entry_id text, p_month integer, p_micros bigint, p_reason text, p_cause text
) RETURNS SETOF priced_ledger
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_account constant accounts := lock_account(p_lane, p_account_id);
  v_entry ledger;
  v_known entry_adjustments;
  v_row ledger;
  v_net bigint;
  v_micros bigint;
BEGIN
  SELECT l.* INTO v_entry FROM ledger l
    WHERE l.lane = p_lane AND l.id = p_entry_id AND l.month = p_month AND l.account_id = p_account_id AND l.kind = 'generation';
  IF NOT FOUND THEN
    PERFORM refuse('not_found', 'The account has no charged generation with this id; entries of archived months cannot be refunded.');
  END IF;
  SELECT x.* INTO v_known FROM entry_adjustments x
    WHERE x.lane = p_lane AND x.account_id = p_account_id AND x.entry_id = p_entry_id AND x.cause = p_cause;
  IF FOUND THEN
    SELECT l.* INTO v_row FROM ledger l
      WHERE l.lane = p_lane AND l.account_id = p_account_id AND l.id = v_known.adjustment_id AND l.month = v_known.month;
    IF (v_known.refund_micros, v_row.reason) <> (p_micros, p_reason) THEN
      PERFORM refuse('idempotency_key_reused', format('This idempotency key was used for another refund, ledger row %s.', v_row.seq));
    END IF;
    RETURN QUERY SELECT * FROM get_entry(p_lane, p_account_id, v_row.id, v_row.month);
    RETURN;
  END IF;
  v_net := net_charge(v_entry);
  v_micros := CASE p_micros WHEN 0 THEN v_net ELSE p_micros END;
  IF v_micros > v_net OR v_micros <= 0 THEN
    PERFORM refuse('invalid_argument', format('at most {%s micros} of the charge of this generation can be refunded', v_net),
      '{"field":"amount_micros"}');
  END IF;
  IF v_account.balance_micros + v_micros > 9000000000000000 THEN
    PERFORM refuse('invalid_argument', 'a balance can be at most {9000000000000000 micros}', '{"field":"amount_micros"}');
  END IF;
  v_row := adjust_entry(v_entry, p_cause, v_micros, p_reason, p_micros);
  PERFORM log_change(p_act, p_lane, p_account_id, p_account_id);
  RETURN QUERY SELECT * FROM get_entry(p_lane, p_account_id, v_row.id, v_row.month);
END
$$;
