-- Starts an automatic top-up of an account whose balance is below its threshold: a server pays it. Starts none beyond the monthly maximum,
-- or while the account owes something or is suspended. The caller holds the lock of the lane.
CREATE OR REPLACE FUNCTION start_auto_topup(p_lane smallint, p_account_id text) RETURNS void
  LANGUAGE plpgsql
AS $$
DECLARE
  v_now constant timestamptz := clock_timestamp();
  v_month_end constant timestamptz := (date_trunc('month', v_now AT TIME ZONE 'UTC') + interval '1 month') AT TIME ZONE 'UTC';
  v_auto auto_topups;
BEGIN
  SELECT s.* INTO v_auto FROM auto_topups s JOIN accounts a ON a.lane = s.lane AND a.id = s.account_id
    WHERE s.lane = p_lane AND s.account_id = p_account_id AND a.auto_topup_below_micros IS NOT NULL AND a.owed_micros = 0
      AND a.suspended_at IS NULL;
  IF NOT FOUND THEN
    RETURN;
  END IF;
  UPDATE accounts SET auto_topup_below_micros = NULL WHERE lane = p_lane AND id = p_account_id;
  IF auto_topup_month(p_lane, p_account_id) + v_auto.amount_micros > v_auto.monthly_max_micros THEN
    UPDATE auto_topups SET full_until = v_month_end, due_at = least(due_at, v_month_end)
      WHERE lane = p_lane AND account_id = p_account_id;
    PERFORM write_auto_topup_event(p_lane, p_account_id, 'topup.auto_failed', '', 'monthly_max_reached');
  ELSE
    INSERT INTO topups (lane, id, account_id, state, amount_micros, currency, return_url, created_at, next_poll_at, is_automatic)
      VALUES (p_lane, 'top' || substr(event_id(p_lane, v_now), 4), p_account_id, 'pending', v_auto.amount_micros, v_auto.currency, '',
        v_now, v_now, true);
  END IF;
END
$$;
