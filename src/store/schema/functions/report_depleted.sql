-- Writes the event balance.depleted after a call was refused that needs more than the balance, at most once per hour. Returns the
-- seconds until the next one can be written.
CREATE OR REPLACE FUNCTION report_depleted(p_lane smallint, p_account_id text, p_required_micros bigint) RETURNS integer
  LANGUAGE plpgsql SECURITY DEFINER
  SET search_path FROM CURRENT
  SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
DECLARE
  v_account constant accounts := lock_account(p_lane, p_account_id);
  v_next timestamptz;
BEGIN
  SELECT e.created_at + interval '1 hour' INTO v_next FROM events e
    WHERE e.lane = p_lane AND e.account_id = p_account_id AND e.type = 'balance.depleted' ORDER BY e.seq DESC LIMIT 1;
  IF v_next > clock_timestamp() THEN
    RETURN ceil(extract(epoch FROM v_next - clock_timestamp()));
  ELSIF v_account.balance_micros >= p_required_micros THEN
    RETURN 0;
  END IF;
  PERFORM write_event(p_lane, p_account_id, 'balance.depleted',
    jsonb_build_object('balance_micros', v_account.balance_micros, 'required_micros', p_required_micros));
  RETURN 3600;
END
$$;
