-- The last complete audit, and when a scheduled one last began.
CREATE OR REPLACE FUNCTION last_audit() RETURNS TABLE (
    claimed_at timestamptz, started_at timestamptz, seconds double precision, entries bigint, findings integer
  )
  LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT
AS $$
BEGIN
  RETURN QUERY
  SELECT nullif(a.claimed_at, '-infinity'), a.started_at, extract(epoch FROM a.ended_at - a.started_at)::double precision,
         a.entries, a.findings
  FROM audit_state a;
END
$$;
