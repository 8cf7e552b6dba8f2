-- What changed for the watchers of events: those whose account has events after p_seqs, and those whose key was revoked, has
-- expired or may no longer read. n is the position of the watcher in the lists.
CREATE OR REPLACE FUNCTION watched_accounts(
  p_lanes smallint[], p_account_ids text[], p_seqs bigint[], p_key_ids text[]
)
  RETURNS TABLE (n bigint, seq bigint, ended text)
  LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path FROM CURRENT
  SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
DECLARE
  v_now constant timestamptz := clock_timestamp();
BEGIN
  RETURN QUERY
  SELECT w.n, e.seq, CASE WHEN k.revoked_at IS NOT NULL THEN 'revoked_api_key' WHEN k.has_ended THEN 'expired_api_key'
      WHEN NOT k.may_read THEN 'insufficient_scope' END
  FROM unnest(p_lanes, p_account_ids, p_seqs, p_key_ids) WITH ORDINALITY AS w (lane, account_id, seq, key_id, n)
  LEFT JOIN LATERAL (SELECT i.seq FROM event_ends i
    WHERE i.lane = w.lane AND i.account_id = w.account_id AND i.seq > w.seq LIMIT 1) e ON true
  LEFT JOIN LATERAL (SELECT i.revoked_at, i.scopes & 2 <> 0 AS may_read, coalesce(i.expires_at <= v_now, false) AS has_ended
      FROM keys i WHERE i.lane = w.lane AND i.id = w.key_id LIMIT 1) k ON true
  WHERE e.seq IS NOT NULL OR k.revoked_at IS NOT NULL OR k.has_ended OR NOT k.may_read;
END
$$;
