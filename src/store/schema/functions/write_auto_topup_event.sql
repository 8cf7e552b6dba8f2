-- Writes an event about the automatic top-ups of an account. p_topup_id is empty for an event that is about none.
CREATE OR REPLACE FUNCTION write_auto_topup_event(p_lane smallint, p_account_id text, p_type text, p_topup_id text, p_reason text)
  RETURNS void
  LANGUAGE plpgsql
AS $$
BEGIN
  PERFORM write_event(p_lane, p_account_id, p_type, jsonb_build_object('topup_id', p_topup_id, 'reason', p_reason,
      'failures', s.failures, 'amount_micros', s.amount_micros, 'monthly_max_micros', s.monthly_max_micros,
      'balance_micros', a.balance_micros))
    FROM auto_topups s JOIN accounts a ON a.lane = s.lane AND a.id = s.account_id
    WHERE s.lane = p_lane AND s.account_id = p_account_id;
END
$$;
