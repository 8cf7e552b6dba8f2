-- Starts a session of the operator with this identity; returns nothing if no active operator has it. The first sign-in binds
-- the identity to the operator with this e-mail address, which must be verified; afterwards only issuer and subject identify
-- the operator.
CREATE OR REPLACE FUNCTION sign_in_operator(
  p_issuer text, p_subject text, p_email text, p_fingerprint bytea, p_request_id text
) RETURNS TABLE (id text, name text, role operator_role)
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  c_max_sessions constant integer := 10;
  v_now constant timestamptz := clock_timestamp();
  v_operator operators;
  v_details json := '{}';
  v_expired bytea[];
BEGIN
  -- The lock keeps the operator from being revoked before the session is stored.
  SELECT o.* INTO v_operator FROM operators o
    WHERE o.issuer = p_issuer AND o.subject = p_subject AND o.revoked_at IS NULL FOR UPDATE;
  IF NOT FOUND AND p_email <> '' THEN
    UPDATE operators o SET issuer = p_issuer, subject = p_subject
      WHERE lower(o.email COLLATE "C") = lower(p_email COLLATE "C") AND o.email <> '' AND o.subject IS NULL
        AND o.revoked_at IS NULL
      RETURNING o.* INTO v_operator;
    v_details := '{"identity":"bound"}';
    IF NOT FOUND THEN
      -- Another sign-in of the identity may have bound it in the meantime.
      SELECT o.* INTO v_operator FROM operators o
        WHERE o.issuer = p_issuer AND o.subject = p_subject AND o.revoked_at IS NULL FOR UPDATE;
      v_details := '{}';
    END IF;
  END IF;
  IF v_operator.id IS NULL THEN
    RETURN;
  END IF;
  v_expired := ARRAY(
    SELECT s.fingerprint FROM operator_sessions s WHERE session_expiry(ROW(s.*)::operator_sessions) <= v_now);
  DELETE FROM operator_sessions s WHERE s.fingerprint = ANY (v_expired);
  DELETE FROM operator_sessions s WHERE s.fingerprint IN (
    SELECT o.fingerprint FROM operator_sessions o WHERE o.operator_id = v_operator.id
    ORDER BY o.created_at DESC OFFSET c_max_sessions - 1);
  INSERT INTO operator_sessions VALUES (p_fingerprint, v_operator.id, v_now, v_now);
  PERFORM log_session(v_operator, 'SignIn', v_details, p_request_id);
  RETURN QUERY SELECT v_operator.id, v_operator.name, v_operator.role;
END
$$;
