-- What follows from the end of an automatic top-up: the third failure in a row disables them. p_failure is empty after a payment,
-- "stopped" if the server did not pay because the settings had changed, and "no_answer" if the provider did not answer within a day. The
-- caller holds the lock of the lane.
CREATE OR REPLACE FUNCTION end_auto_topup(p_lane smallint, p_account_id text, p_topup_id text, p_failure text) RETURNS void
  LANGUAGE plpgsql
AS $$
DECLARE
  c_max_failures constant integer := 3;
  v_failures smallint;
BEGIN
  UPDATE auto_topups s SET last_failure = p_failure,
      failures = CASE p_failure WHEN '' THEN 0 WHEN 'stopped' THEN s.failures WHEN 'no_answer' THEN s.failures ELSE s.failures + 1 END
    WHERE s.lane = p_lane AND s.account_id = p_account_id
    RETURNING s.failures INTO v_failures;
  IF p_failure <> '' THEN
    PERFORM write_auto_topup_event(p_lane, p_account_id, 'topup.auto_failed', p_topup_id, p_failure);
  END IF;
  IF v_failures >= c_max_failures THEN
    UPDATE auto_topups s SET is_enabled = false WHERE s.lane = p_lane AND s.account_id = p_account_id AND s.is_enabled;
    IF FOUND THEN
      PERFORM write_auto_topup_event(p_lane, p_account_id, 'topup.auto_disabled', p_topup_id, 'failures');
    END IF;
  END IF;
  PERFORM arm_auto_topup(p_lane, p_account_id, false);
END
$$;
