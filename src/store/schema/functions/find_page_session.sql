-- The session of the customer page with this fingerprint, if it has not ended. Records the use once a minute. The page that an operator
-- views is closed when the operator is revoked or becomes a viewer.
CREATE OR REPLACE FUNCTION find_page_session(p_fingerprint bytea)
  RETURNS TABLE (id text, person_id text, email text, operator_name text, account_id text, expires_at timestamptz,
    issuer text)
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_now constant timestamptz := clock_timestamp();
  v_session page_sessions;
BEGIN
  SELECT s.* INTO v_session FROM page_sessions s
    WHERE s.fingerprint = p_fingerprint AND NOT s.is_link AND page_session_expiry(ROW(s.*)::page_sessions) > v_now;
  IF NOT FOUND THEN
    RETURN;
  END IF;
  IF v_session.used_at < v_now - interval '1 minute' THEN
    UPDATE page_sessions s SET used_at = v_now WHERE s.fingerprint = p_fingerprint RETURNING s.* INTO v_session;
    IF NOT FOUND THEN
      RETURN;
    END IF;
  END IF;
  RETURN QUERY SELECT v_session.id, coalesce(v_session.person_id, ''), coalesce(p.email, ''), v_session.operator_name,
      coalesce(v_session.account_id, ''), page_session_expiry(v_session), coalesce(p.issuer, '')
    FROM (SELECT) one LEFT JOIN people p ON p.id = v_session.person_id LEFT JOIN operators o ON o.id = v_session.operator_id
    WHERE o.revoked_at IS NULL AND o.role IS DISTINCT FROM 'viewer';
END
$$;
