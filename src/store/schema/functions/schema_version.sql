-- The number of the newest table migration, the release that migrated last, and the oldest release whose servers work
-- with this schema.
CREATE OR REPLACE FUNCTION schema_version()
  RETURNS TABLE (version integer, release text, oldest_release text)
  LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT
AS $$
BEGIN
  RETURN QUERY SELECT (SELECT max(m.version) FROM migrations m), r.release, r.oldest_release
    FROM releases r ORDER BY r.applied_at DESC LIMIT 1;
END
$$;
