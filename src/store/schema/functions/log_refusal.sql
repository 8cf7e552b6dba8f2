-- Records a change that was refused, at most 100 of an operator in a minute: an operator without rights must not fill the
-- disk.
CREATE OR REPLACE FUNCTION log_refusal(p_caller caller, p_lane smallint, p_account_id text, p_outcome text)
  RETURNS void
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  c_max_per_minute constant integer := 100;
  v_since constant timestamptz := clock_timestamp() - interval '1 minute';
BEGIN
  PERFORM require_lane(p_lane);
  IF p_outcome = 'ok' THEN
    RAISE EXCEPTION 'ok is the outcome of a change that was made';
  END IF;
  IF (SELECT count(*) FROM (
        SELECT 1 FROM operator_events e
        WHERE e.actor_id = p_caller.id AND e.created_at > v_since AND e.outcome <> 'ok' LIMIT c_max_per_minute
      ) recent) < c_max_per_minute THEN
    PERFORM append_operator_event(p_caller, p_lane, p_caller.target, p_account_id, p_outcome);
  END IF;
END
$$;
