-- Ends a session. A session that does not exist, or has expired, is ignored.
CREATE OR REPLACE FUNCTION end_session(p_fingerprint bytea, p_request_id text) RETURNS void
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_operator operators;
BEGIN
  DELETE FROM operator_sessions s USING operators o
    WHERE s.fingerprint = p_fingerprint AND o.id = s.operator_id AND session_expiry(s) > clock_timestamp()
    RETURNING o.* INTO v_operator;
  IF FOUND THEN
    PERFORM append_operator_event(
      ROW(v_operator.id, v_operator.name, 'SignOut', '', '', '{}', p_request_id)::operator_act,
      no_lane(), v_operator.id, '', 'ok');
  END IF;
END
$$;
