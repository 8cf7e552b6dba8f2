-- Recomputes the hashes of all price versions, those of accounts included. Returns one row per version that was changed, that follows a
-- gap, or that is not the last one although its account says so.
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
  RETURN QUERY
  SELECT c.account_id, 'prices_unchanged',
         format('the hash of version %s of the prices of the account does not match the version and the versions before it', c.version)
  FROM (
    SELECT v.account_id, v.version, v.hash, row_number() OVER chain AS expected_version,
           account_price_hash(lag(v.hash, 1, '\x'::bytea) OVER chain, ROW(v.*)::account_prices) AS expected_hash
    FROM account_prices v WINDOW chain AS (PARTITION BY v.account_id ORDER BY v.version)
  ) c
  WHERE c.hash <> c.expected_hash OR c.version <> c.expected_version
  ORDER BY c.account_id, c.version LIMIT p_max_findings;
  RETURN QUERY
  SELECT a.id, 'prices_unchanged', format('the account has price version %s, the last one is %s', a.price_list_version, v.last)
  FROM accounts a
  CROSS JOIN LATERAL (
    SELECT coalesce(max(p.version), 0) AS last FROM account_prices p WHERE p.lane = a.lane AND p.account_id = a.id
  ) v
  WHERE (a.price_list_version > 0 OR a.id IN (SELECT p.account_id FROM account_prices p)) AND a.price_list_version <> v.last
  ORDER BY a.id LIMIT p_max_findings;
END
$$;
