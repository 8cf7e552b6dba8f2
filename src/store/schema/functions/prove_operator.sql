-- Refuses an operator who was revoked, whose session has ended, or who has another role than the one that the server checked. Each cell has
-- the operators; sessions are in the first cell, where the server calls this alone to keep one locked for a change in another cell.
CREATE OR REPLACE FUNCTION prove_operator(p_caller caller) RETURNS void
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_operator operators;
BEGIN
  SELECT o.* INTO v_operator FROM operators o WHERE o.id = p_caller.id AND o.revoked_at IS NULL FOR SHARE;
  IF NOT FOUND OR p_caller.kind = 'operator' AND v_operator.fingerprint IS DISTINCT FROM p_caller.fingerprint THEN
    PERFORM refuse('invalid_operator_token');
  ELSIF v_operator.role::text IS DISTINCT FROM p_caller.role THEN
    PERFORM refuse('insufficient_role', 'Your role was changed during the call. Repeat the call.');
  END IF;
  IF p_caller.kind = 'operator_session' AND p_caller.fingerprint IS NOT NULL THEN
    PERFORM 1 FROM operator_sessions s
      WHERE s.fingerprint = p_caller.fingerprint AND s.operator_id = p_caller.id
        AND session_expiry(ROW(s.*)::operator_sessions) > clock_timestamp() FOR KEY SHARE;
    IF NOT FOUND THEN
      PERFORM refuse('invalid_operator_token', 'The session has expired or was ended. Sign in again.');
    END IF;
  END IF;
END
$$;
