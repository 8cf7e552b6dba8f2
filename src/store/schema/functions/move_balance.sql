-- A credit or an adjustment. The same idempotency key moves the balance once and returns the row it wrote.
CREATE OR REPLACE FUNCTION move_balance(
  p_caller caller, p_lane smallint, p_account_id text, p_entry_id text, p_month integer, p_kind text, p_amount_micros bigint,
  p_reason text, p_idempotency_key text, p_expires_at timestamptz DEFAULT NULL, p_is_promotional boolean DEFAULT false
) RETURNS SETOF priced_ledger
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_proven constant keys := prove(p_caller, p_lane);
  v_account constant accounts := require_account(p_lane, p_account_id);
  v_row constant ledger := movement_of_key(p_lane, p_account_id, p_idempotency_key);
  v_expires_at timestamptz;
  v_is_promotional boolean;
BEGIN
  IF v_row.id IS NOT NULL THEN
    SELECT g.expires_at, g.is_promotional INTO v_expires_at, v_is_promotional FROM grants g
      WHERE g.lane = p_lane AND g.account_id = p_account_id AND g.seq = v_row.seq;
    IF (v_row.kind::text, v_row.amount_micros, v_row.reason, v_row.adjusted_id, coalesce(v_expires_at, 'infinity'),
        coalesce(v_is_promotional, false))
        <> (p_kind, p_amount_micros, p_reason, '', coalesce(p_expires_at, 'infinity'), p_is_promotional) THEN
      PERFORM refuse('idempotency_key_reused',
        format('This idempotency key was used for another movement, ledger row %s.', v_row.seq));
    END IF;
    RETURN QUERY SELECT * FROM get_entry(p_lane, p_account_id, v_row.id, v_row.month);
    RETURN;
  END IF;
  PERFORM require_open_account(p_lane, p_account_id);
  IF v_account.balance_micros + p_amount_micros < v_account.held_micros THEN
    PERFORM refuse('insufficient_balance', format('The adjustment would take {%s micros}, but only {%s micros} is free: the balance is {%s micros}, running calls hold {%s micros}.',
        -p_amount_micros, v_account.balance_micros - v_account.held_micros, v_account.balance_micros, v_account.held_micros),
      jsonb_build_object('balance_micros', v_account.balance_micros::text, 'held_micros', v_account.held_micros::text,
        'available_micros', (v_account.balance_micros - v_account.held_micros)::text, 'required_micros', (-p_amount_micros)::text,
        'shortage_micros', (-p_amount_micros - v_account.balance_micros + v_account.held_micros)::text));
  END IF;
  IF v_account.balance_micros + p_amount_micros > 9000000000000000 THEN
    PERFORM refuse('invalid_argument', 'a balance can be at most {9000000000000000 micros}', '{"field":"amount_micros"}');
  END IF;
  PERFORM post_entries(ARRAY[ROW(p_lane, p_account_id, NULL, p_entry_id, p_month, p_kind, p_amount_micros, p_reason, '',
    '', '', 0, 0, 0, 0, 0, 0, 0, 0, '', '', NULL, 0, 0, 0, '', NULL, '')::entry_item], NULL);
  IF p_expires_at IS NOT NULL OR p_is_promotional THEN
    PERFORM add_grant(p_lane, p_account_id, p_entry_id, v_account.last_seq + 1, p_amount_micros, coalesce(p_expires_at, 'infinity'),
      p_is_promotional);
  END IF;
  INSERT INTO movement_keys (lane, account_id, idempotency_key, seq, month)
    VALUES (p_lane, p_account_id, p_idempotency_key, v_account.last_seq + 1, p_month);
  PERFORM write_event(p_lane, p_account_id, p_kind || '.posted', jsonb_build_object('entry_id', p_entry_id,
    'amount_micros', p_amount_micros, 'balance_after_micros', v_account.balance_micros + p_amount_micros, 'reason', p_reason));
  PERFORM log_change(p_caller, p_lane, p_account_id, p_account_id);
  RETURN QUERY SELECT * FROM get_entry(p_lane, p_account_id, p_entry_id, p_month);
END
$$;
