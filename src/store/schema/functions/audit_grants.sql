-- Compares the grants of a lane with the balances and the ledger: those of at most p_limit accounts after p_account_id. The ledger of
-- accounts with archived entries does not tell what is left.
--
-- Returns one row per difference. The first row has an empty rule and the account after which the next piece starts: none at the end of the
-- lane. Locks the ledger before its snapshot is taken: see audit.
CREATE OR REPLACE FUNCTION audit_grants(p_lane smallint, p_account_id text, p_limit integer, p_max_findings integer)
  RETURNS TABLE (account_id text, rule text, detail text, next_account_id text)
  LANGUAGE plpgsql SECURITY DEFINER
  SET search_path FROM CURRENT
  SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
BEGIN
  LOCK TABLE ledger IN ACCESS SHARE MODE;
  RETURN QUERY
  WITH ids AS MATERIALIZED (
    SELECT a.id, a.balance_micros, a.grants_expire_at FROM accounts a
    WHERE a.lane = p_lane AND a.id > p_account_id ORDER BY a.id LIMIT p_limit
  ), sums AS MATERIALIZED (
    SELECT i.*, s.next, s.grants, (SELECT coalesce(sum(r.rest_micros), 0) FROM grant_rests(p_lane, i.id) r) AS rest
    FROM ids i CROSS JOIN LATERAL (
      SELECT min(g.expires_at) FILTER (WHERE g.rest_micros > 0) AS next, count(*) AS grants
      FROM grants g WHERE g.lane = p_lane AND g.account_id = i.id) s
  ), findings AS (
    SELECT s.id AS account_id, 'balance_covers_grants' AS rule, format('balance %s, grants add up to %s', s.balance_micros, s.rest) AS detail
    FROM sums s WHERE s.rest > s.balance_micros
    UNION ALL
    SELECT s.id, 'next_expiry_known', format('next expiry %s, that of the grants is %s', s.grants_expire_at, s.next)
    FROM sums s WHERE s.grants_expire_at IS DISTINCT FROM s.next
    UNION ALL
    SELECT s.id, p.rule, p.detail FROM sums s CROSS JOIN LATERAL replay_grants(p_lane, s.id) p
    WHERE s.grants > 0 AND NOT EXISTS (SELECT 1 FROM archived_heads(p_lane, s.id, s.id))
  )
  SELECT '', '', '', (SELECT max(i.id) FROM ids i HAVING count(*) = p_limit)
  UNION ALL
  (SELECT f.account_id, f.rule, f.detail, NULL FROM findings f LIMIT p_max_findings);
END
$$;
