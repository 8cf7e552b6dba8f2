-- Lets the next charge or refused call below the threshold start an automatic top-up, if the settings allow one; starts one at once if
-- p_may_start and the balance is below. The caller holds the lock of the lane.
CREATE OR REPLACE FUNCTION arm_auto_topup(p_lane smallint, p_account_id text, p_may_start boolean) RETURNS void
  LANGUAGE plpgsql
AS $$
DECLARE
  v_now constant timestamptz := clock_timestamp();
  v_is_below boolean;
BEGIN
  UPDATE auto_topups s SET due_at = least(CASE WHEN s.full_until > v_now THEN s.full_until END, CASE WHEN s.page_id IS NOT NULL
      THEN v_now + least(greatest(v_now - s.page_created_at, interval '1 minute'), interval '1 hour') END)
    WHERE s.lane = p_lane AND s.account_id = p_account_id;
  UPDATE accounts a SET auto_topup_below_micros = s.threshold_micros
    FROM auto_topups s
    WHERE a.lane = p_lane AND a.id = p_account_id AND s.lane = p_lane AND s.account_id = p_account_id AND s.is_enabled
      AND s.method_id IS NOT NULL AND coalesce(s.full_until <= v_now, true) AND NOT EXISTS (SELECT 1 FROM topups t
        WHERE t.lane = p_lane AND t.account_id = p_account_id AND t.is_automatic AND t.state = 'pending')
    RETURNING a.balance_micros < a.auto_topup_below_micros INTO v_is_below;
  IF v_is_below IS NULL THEN
    UPDATE accounts SET auto_topup_below_micros = NULL WHERE lane = p_lane AND id = p_account_id;
  ELSIF p_may_start AND v_is_below THEN
    PERFORM start_auto_topup(p_lane, p_account_id);
  END IF;
END
$$;
