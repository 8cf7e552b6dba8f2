-- What changed for the watchers of events: those whose account has events after p_seqs, and those whose key was revoked, has
-- expired or may not read any more, or whose secret, with the visible characters p_visible, was replaced and has ended. n is the position of
-- the watcher in the lists.
CREATE OR REPLACE FUNCTION watched_accounts(
  p_lanes smallint[], p_account_ids text[], p_seqs bigint[], p_key_ids text[], p_visible text[]
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
  FROM unnest(p_lanes, p_account_ids, p_seqs, p_key_ids, p_visible) WITH ORDINALITY AS w (lane, account_id, seq, key_id, visible, n)
  LEFT JOIN LATERAL (SELECT i.seq FROM event_ends i
    WHERE i.lane = w.lane AND i.account_id = w.account_id AND i.seq > w.seq LIMIT 1) e ON true
  LEFT JOIN LATERAL (SELECT i.revoked_at, i.scopes & 2 <> 0 AS may_read, coalesce(i.expires_at <= v_now, false)
        OR i.visible_start || i.visible_end <> w.visible AND NOT EXISTS (SELECT 1 FROM previous_secrets s
          WHERE s.lane = i.lane AND s.key_id = i.id AND s.visible_start || s.visible_end = w.visible AND s.expires_at > v_now) AS has_ended
      FROM keys i WHERE i.lane = w.lane AND i.id = w.key_id LIMIT 1) k ON true
  WHERE e.seq IS NOT NULL OR k.revoked_at IS NOT NULL OR k.has_ended OR NOT k.may_read;
END
$$;
