-- Gives back a part of the charge of a generation; all that is left of it if p_micros is 0. The same idempotency key does it once, and
-- returns the entry of the refund.
CREATE OR REPLACE FUNCTION refund_entry(
  p_caller caller, p_lane smallint, p_account_id text, p_entry_id text, p_month integer, p_micros bigint, p_reason text,
  p_idempotency_key text
) RETURNS SETOF priced_ledger
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_proven constant keys := prove(p_caller, p_lane);
  v_account constant accounts := require_account(p_lane, p_account_id);
  v_row ledger := movement_of_key(p_lane, p_account_id, p_idempotency_key);
  v_entry ledger;
  v_net bigint;
  v_micros bigint;
BEGIN
  IF v_row.id IS NOT NULL THEN
    IF v_row.reason <> p_reason OR NOT EXISTS (SELECT 1 FROM entry_adjustments x
        WHERE x.lane = p_lane AND x.account_id = p_account_id AND x.entry_id = p_entry_id AND x.adjustment_id = v_row.id
          AND x.refund_micros = p_micros) THEN
      PERFORM refuse('idempotency_key_reused',
        format('This idempotency key was used for another movement, ledger row %s.', v_row.seq));
    END IF;
    RETURN QUERY SELECT * FROM get_entry(p_lane, p_account_id, v_row.id, v_row.month);
    RETURN;
  END IF;
  PERFORM require_open_account(p_lane, p_account_id);
  SELECT l.* INTO v_entry FROM ledger l
    WHERE l.lane = p_lane AND l.id = p_entry_id AND l.month = p_month AND l.account_id = p_account_id AND l.kind = 'generation';
  IF NOT FOUND THEN
    PERFORM refuse('not_found', 'The account has no charged generation with this id; entries of archived months cannot be refunded.');
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
  v_row := adjust_entry(v_entry, 'key_' || p_idempotency_key, v_micros, p_reason, p_micros);
  INSERT INTO movement_keys (lane, account_id, idempotency_key, seq, month)
    VALUES (p_lane, p_account_id, p_idempotency_key, v_row.seq, v_row.month);
  PERFORM log_change(p_caller, p_lane, p_account_id, p_account_id);
  RETURN QUERY SELECT * FROM get_entry(p_lane, p_account_id, v_row.id, v_row.month);
END
$$;
