-- The active operator with this fingerprint. Records the use of the token once a minute.
CREATE OR REPLACE FUNCTION find_operator(p_fingerprint bytea)
  RETURNS TABLE (id text, name text, role operator_role)
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_now constant timestamptz := clock_timestamp();
  v_operator operators;
BEGIN
  SELECT o.* INTO v_operator FROM operators o WHERE o.fingerprint = p_fingerprint AND o.revoked_at IS NULL;
  IF NOT FOUND THEN
    RETURN;
  END IF;
  IF v_operator.last_used_at IS NULL OR v_operator.last_used_at < v_now - interval '1 minute' THEN
    UPDATE operators o SET last_used_at = v_now WHERE o.id = v_operator.id;
  END IF;
  RETURN QUERY SELECT v_operator.id, v_operator.name, v_operator.role;
END
$$;
