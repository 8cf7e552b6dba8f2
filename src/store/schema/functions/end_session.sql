-- Ends a session. A session that does not exist, or has expired, is ignored.
CREATE OR REPLACE FUNCTION end_session(p_fingerprint bytea, p_request_id text) RETURNS void
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_now constant timestamptz := clock_timestamp();
  v_session operator_sessions;
  v_operator operators;
BEGIN
  DELETE FROM operator_sessions s WHERE s.fingerprint = p_fingerprint RETURNING s.* INTO v_session;
  IF session_expiry(v_session) > v_now THEN
    SELECT o.* INTO v_operator FROM operators o WHERE o.id = v_session.operator_id;
    PERFORM log_session(v_operator, 'SignOut', '{}', p_request_id);
  END IF;
END
$$;
