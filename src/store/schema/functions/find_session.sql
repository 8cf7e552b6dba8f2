-- The active operator of this session, and when the session ends. With p_is_use, records the use once a minute.
CREATE OR REPLACE FUNCTION find_session(p_fingerprint bytea, p_is_use boolean)
  RETURNS TABLE (id text, name text, role operator_role, expires_at timestamptz)
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_now constant timestamptz := clock_timestamp();
  v_session operator_sessions;
BEGIN
  SELECT s.* INTO v_session FROM operator_sessions s JOIN operators o ON o.id = s.operator_id
    WHERE s.fingerprint = p_fingerprint AND session_expiry(ROW(s.*)::operator_sessions) > v_now AND o.revoked_at IS NULL;
  IF NOT FOUND THEN
    RETURN;
  END IF;
  IF p_is_use AND v_session.used_at < v_now - interval '1 minute' THEN
    -- The operator first, as in all functions that lock both: otherwise a revocation could deadlock.
    UPDATE operators o SET last_used_at = v_now WHERE o.id = v_session.operator_id AND o.revoked_at IS NULL;
    IF NOT FOUND THEN
      RETURN;
    END IF;
    UPDATE operator_sessions s SET used_at = v_now WHERE s.fingerprint = p_fingerprint RETURNING s.* INTO v_session;
  END IF;
  RETURN QUERY SELECT o.id, o.name, o.role, session_expiry(v_session) FROM operators o
    WHERE o.id = v_session.operator_id;
END
$$;
