-- Recomputes the hashes of all price versions. Returns one row per version that was changed, or that follows a gap.
CREATE OR REPLACE FUNCTION audit_prices(p_max_findings integer)
  RETURNS TABLE (account_id text, rule text, detail text)
  LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT
AS $$
BEGIN
  RETURN QUERY
  SELECT '', 'prices_unchanged',
         format('the hash of price version %s of model "%s" does not match the version and the versions before it',
           c.version, c.model)
  FROM (
    SELECT v.model, v.version, v.hash, row_number() OVER chain AS expected_version,
           price_hash(lag(v.hash, 1, '\x'::bytea) OVER chain, ROW(v.*)::price_versions) AS expected_hash
    FROM price_versions v WINDOW chain AS (PARTITION BY v.model ORDER BY v.version)
  ) c
  WHERE c.hash <> c.expected_hash OR c.version <> c.expected_version
  ORDER BY c.model, c.version LIMIT p_max_findings;
END
$$;
