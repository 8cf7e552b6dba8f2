-- The keys revoked within the last p_seconds: their running streams are cut.
CREATE OR REPLACE FUNCTION recently_revoked_keys(p_seconds integer) RETURNS SETOF text
  LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_since constant timestamptz := clock_timestamp() - make_interval(secs => p_seconds);
BEGIN
  RETURN QUERY SELECT k.id FROM keys k WHERE k.revoked_at > v_since;
END
$$;
