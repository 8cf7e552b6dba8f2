-- Records a change by an operator, a member, or a person who joins an account, in its transaction. Changes by keys are not recorded.
CREATE OR REPLACE FUNCTION log_change(p_caller caller, p_lane smallint, p_target text, p_account_id text) RETURNS void
  LANGUAGE plpgsql
AS $$
BEGIN
  IF p_caller.kind <> 'key' THEN
    PERFORM append_operator_event(p_caller, p_lane, p_target, p_account_id, 'ok');
  END IF;
END
$$;
