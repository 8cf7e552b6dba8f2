-- Keys that expire within 7 days or a day and whose event key.expiring is not written yet.
CREATE OR REPLACE FUNCTION expiring_keys(p_limit integer) RETURNS TABLE (lane smallint, id text)
  LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_now constant timestamptz := clock_timestamp();
BEGIN
  RETURN QUERY SELECT k.lane, k.id FROM keys k
    WHERE k.revoked_at IS NULL AND k.expires_at > v_now AND k.expires_at <= v_now + interval '7 days'
      AND days_warned(v_now, k.expires_at) IS DISTINCT FROM k.warned_days
      AND NOT EXISTS (SELECT 1 FROM lanes l WHERE l.lane = k.lane AND NOT l.is_owned)
    ORDER BY k.expires_at LIMIT p_limit;
END
$$;
