-- Stores the result of an audit that began at a time, unless that of a later one is stored.
CREATE OR REPLACE FUNCTION record_audit(p_started_at timestamptz, p_entries bigint, p_findings integer) RETURNS void
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
BEGIN
  UPDATE audit_state SET started_at = p_started_at, ended_at = clock_timestamp(), entries = p_entries, findings = p_findings
    WHERE coalesce(started_at, '-infinity') <= p_started_at;
END
$$;
