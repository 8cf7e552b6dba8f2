-- Whether the caller begins the next scheduled audit: one of all servers does, p_hours after the last one.
CREATE OR REPLACE FUNCTION claim_audit(p_hours integer) RETURNS TABLE (is_due boolean)
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_now constant timestamptz := clock_timestamp();
BEGIN
  UPDATE audit_state SET claimed_at = v_now WHERE claimed_at <= v_now - p_hours * interval '1 hour';
  is_due := FOUND;
  RETURN NEXT;
END
$$;
