-- Sets the automatic top-ups of an account. The amounts are kept when they are disabled. A key of the account may only lower and stop
-- them.
CREATE OR REPLACE FUNCTION put_auto_topup(
  p_caller caller, p_lane smallint, p_account_id text, p_is_enabled boolean, p_threshold_micros bigint, p_amount_micros bigint,
  p_monthly_max_micros bigint, p_currency text
) RETURNS SETOF auto_topup_view
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_proven constant keys := prove(p_caller, p_lane);
  v_old auto_topups;
BEGIN
  PERFORM require_open_account(p_lane, p_account_id);
  SELECT s.* INTO v_old FROM auto_topups s WHERE s.lane = p_lane AND s.account_id = p_account_id;
  IF p_caller.kind = 'key' AND p_is_enabled AND (v_old.is_enabled IS NOT TRUE OR p_threshold_micros > v_old.threshold_micros
      OR p_amount_micros > v_old.amount_micros OR p_monthly_max_micros > v_old.monthly_max_micros) THEN
    PERFORM refuse('insufficient_scope',
      'A key can only lower and stop automatic top-ups. To start or to raise them, sign in to the account page or ask the operator of this service.');
  END IF;
  IF p_is_enabled THEN
    INSERT INTO auto_topups AS s (lane, account_id, is_enabled, threshold_micros, amount_micros, monthly_max_micros, currency)
      VALUES (p_lane, p_account_id, true, p_threshold_micros, p_amount_micros, p_monthly_max_micros, p_currency)
      ON CONFLICT ON CONSTRAINT auto_topups_pkey DO UPDATE SET is_enabled = true, threshold_micros = excluded.threshold_micros,
        amount_micros = excluded.amount_micros, monthly_max_micros = excluded.monthly_max_micros, currency = excluded.currency,
        full_until = NULL, failures = CASE WHEN s.is_enabled THEN s.failures ELSE 0 END;
  ELSIF v_old.is_enabled THEN
    UPDATE auto_topups SET is_enabled = false WHERE lane = p_lane AND account_id = p_account_id;
    PERFORM write_auto_topup_event(p_lane, p_account_id, 'topup.auto_disabled', '', actor_kind(p_caller));
  END IF;
  PERFORM arm_auto_topup(p_lane, p_account_id, p_is_enabled);
  -- A payment that is not sent yet may have become too high.
  UPDATE topups SET next_poll_at = clock_timestamp()
    WHERE lane = p_lane AND account_id = p_account_id AND is_automatic AND state = 'pending' AND next_poll_at IS NOT NULL;
  PERFORM log_change(p_caller, p_lane, p_account_id, p_account_id);
  RETURN QUERY SELECT * FROM get_auto_topup(p_lane, p_account_id);
END
$$;
