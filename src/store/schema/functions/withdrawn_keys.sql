-- The keys that lost the right to generate within the last p_seconds, and why: their running streams are cut. A rotation cuts none.
CREATE OR REPLACE FUNCTION withdrawn_keys(p_seconds integer) RETURNS TABLE (key_id text, reason text)
  LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  c_generate constant smallint := 1;
  v_since constant timestamptz := clock_timestamp() - make_interval(secs => p_seconds);
BEGIN
  RETURN QUERY
  SELECT k.id, 'revoked_api_key' FROM keys k WHERE k.revoked_at > v_since
  UNION ALL
  SELECT k.id, 'insufficient_scope' FROM keys k WHERE k.scopes_reduced_at > v_since AND k.scopes & c_generate = 0
  UNION ALL
  SELECT k.id, 'account_suspended' FROM accounts a JOIN keys k ON k.lane = a.lane AND k.account_id = a.id AND k.revoked_at IS NULL
    WHERE a.suspended_at > v_since;
END
$$;
