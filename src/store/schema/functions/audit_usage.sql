-- Compares the usage of one piece of a lane with its ledger: of p_limit entries, in the order of account and seq, after
-- entry p_seq of p_account_id. p_sum is the fingerprint of that account's usage up to there, p_stored that of its sums before
-- quarter p_quarter, which no longer change.
--
-- Returns one row per difference. The first row has an empty rule and the position of the next piece: no account at the
-- end of the lane. The usage of an account is read with its last entries, so both are from one snapshot. Archived entries and
-- their usage are not compared here: see audit_archived_usage. Locks the ledger before its snapshot is taken: see audit.
CREATE OR REPLACE FUNCTION audit_usage(
  p_lane smallint, p_account_id text, p_seq bigint, p_sum numeric, p_stored numeric, p_quarter integer, p_limit integer,
  p_max_findings integer
) RETURNS TABLE (
    account_id text, rule text, detail text, next_account_id text, next_seq bigint, next_sum numeric
  )
  LANGUAGE plpgsql SECURITY DEFINER
  SET search_path FROM CURRENT
  -- Forces reads in the order of the primary keys, regardless of the statistics.
  SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
DECLARE
  -- Finding the sums that differ reads all entries of an account at once.
  c_described constant bigint := 100000;
BEGIN
  LOCK TABLE ledger IN ACCESS SHARE MODE;
  RETURN QUERY
  WITH RECURSIVE piece AS MATERIALIZED (
    SELECT e.account_id, e.seq, e.fingerprint FROM usage_of_entries(p_lane, p_account_id, p_seq, p_limit) e
  ), parts AS MATERIALIZED (
    SELECT t.account_id, max(t.seq) AS seq, sum(t.fingerprint) AS fingerprint
    FROM (SELECT * FROM piece UNION ALL SELECT p_account_id, p_seq, p_sum WHERE p_seq > 0) t
    GROUP BY t.account_id
  ), unfinished AS MATERIALIZED (
    -- The piece is full, so its last account may have more entries.
    SELECT t.* FROM parts t WHERE (SELECT count(*) FROM piece) = p_limit ORDER BY t.account_id DESC LIMIT 1
  ), ids AS (
    -- The accounts with sums, each found by the index: of an account with archived entries, most sums are not read here.
    SELECT p_account_id AS account_id
    UNION ALL
    SELECT (SELECT min(q.account_id) FROM usage_quarters q WHERE q.lane = p_lane AND q.account_id > i.account_id)
    FROM ids i WHERE i.account_id < coalesce((SELECT t.account_id FROM unfinished t), i.account_id || 'z')
  ), stored AS (
    SELECT i.account_id,
           usage_total(p_lane, i.account_id, greatest(h.end_quarter, CASE i.account_id WHEN p_account_id THEN p_quarter END, 0)) AS fingerprint
    FROM ids i
    LEFT JOIN archived_heads(p_lane, p_account_id, (SELECT t.account_id FROM unfinished t)) h ON h.account_id = i.account_id
    WHERE i.account_id < (SELECT t.account_id FROM unfinished t)
       OR i.account_id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM unfinished)
  ), different AS (
    SELECT coalesce(s.account_id, t.account_id) AS account_id
    FROM stored s FULL JOIN parts t ON t.account_id = s.account_id
    WHERE coalesce(s.fingerprint, 0) + CASE coalesce(s.account_id, t.account_id) WHEN p_account_id THEN p_stored ELSE 0 END
        <> coalesce(t.fingerprint, 0)
      AND coalesce(s.account_id, t.account_id) <> coalesce((SELECT f.account_id FROM unfinished f), '')
  )
  SELECT '', '', '', n.account_id, n.seq, n.fingerprint FROM (VALUES (1)) AS one LEFT JOIN unfinished n ON true
  UNION ALL
  (SELECT d.account_id, 'usage_equals_ledger', coalesce(x.detail, 'the sums differ from the ledger'), NULL, NULL, NULL
   FROM different d
   LEFT JOIN accounts a ON a.lane = p_lane AND a.id = d.account_id
   LEFT JOIN LATERAL (SELECT u AS detail FROM usage_differences(p_lane, d.account_id, 10) u
     WHERE a.last_seq <= c_described) x ON true
   -- The clock of the database may have been set back when the archived month ended, and while a piece was read entries may
   -- have been archived.
   WHERE NOT EXISTS (SELECT 1 FROM archived_heads(p_lane, d.account_id, d.account_id) h)
     OR NOT usage_equals_ledger(p_lane, d.account_id)
   LIMIT p_max_findings);
END
$$;
