-- Suspends an account, so that admission refuses its calls, or resumes it. A repetition keeps the time of the suspension.
CREATE OR REPLACE FUNCTION set_account_suspended(p_caller caller, p_lane smallint, p_id text, p_suspended boolean)
  RETURNS SETOF account_views
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_proven constant keys := prove(p_caller, p_lane);
  v_now constant timestamptz := clock_timestamp();
BEGIN
  PERFORM require_open_account(p_lane, p_id);
  UPDATE accounts SET suspended_at = CASE WHEN p_suspended THEN v_now END
    WHERE lane = p_lane AND id = p_id AND (suspended_at IS NOT NULL) <> p_suspended;
  IF FOUND THEN
    PERFORM write_event(p_lane, p_id, CASE WHEN p_suspended THEN 'account.suspended' ELSE 'account.resumed' END, '{}');
    PERFORM log_change(p_caller, p_lane, p_id, p_id);
  END IF;
  RETURN QUERY SELECT * FROM get_account(p_lane, p_id);
END
$$;
