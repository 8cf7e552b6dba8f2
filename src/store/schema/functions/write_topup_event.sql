-- Writes an event with the current state of a top-up. p_entry_id is the ledger row of its credit, if the event is about that.
CREATE OR REPLACE FUNCTION write_topup_event(p_lane smallint, p_id text, p_type text, p_entry_id text) RETURNS void
  LANGUAGE plpgsql
AS $$
BEGIN
  PERFORM write_event(p_lane, t.account_id, p_type, jsonb_build_object('topup_id', t.id, 'state', t.state, 'automatic', t.is_automatic,
      'amount_micros', t.amount_micros, 'refunded_micros', t.refunded_micros, 'disputed_micros', t.disputed_micros,
      'entry_id', coalesce(p_entry_id, ''), 'balance_micros', a.balance_micros, 'owed_micros', a.owed_micros))
    FROM topups t JOIN accounts a ON a.lane = t.lane AND a.id = t.account_id WHERE t.lane = p_lane AND t.id = p_id;
END
$$;
