-- Recomputes one piece of the operator log: at most p_limit events in the order of lane and seq, after event p_seq of
-- p_lane, whose hash is p_hash. Returns one row per difference. The first row has an empty rule, the number of events, and
-- the position of the next piece: no lane at the end, where the last events are compared with the ends of the chains.
CREATE OR REPLACE FUNCTION audit_operator_events(
  p_lane smallint, p_seq bigint, p_hash bytea, p_limit integer, p_max_findings integer
) RETURNS TABLE (
    account_id text, rule text, detail text, events bigint, next_lane smallint, next_seq bigint, next_hash bytea
  )
  LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path FROM CURRENT
  SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
BEGIN
  RETURN QUERY
  WITH piece AS MATERIALIZED (
    SELECT e.lane, e.seq, e.hash, e.account_id, ROW(e.*)::operator_events AS event FROM operator_events e
    WHERE (e.lane, e.seq) > (p_lane, p_seq) ORDER BY e.lane, e.seq LIMIT p_limit
  ), rows AS MATERIALIZED (
    SELECT p.lane, p.seq, p.hash, p.account_id,
           CASE p.lane WHEN p_lane THEN p_seq ELSE 0 END + row_number() OVER chain AS expected_seq,
           operator_event_hash(lag(p.hash, 1, CASE p.lane WHEN p_lane THEN p_hash ELSE '\x'::bytea END) OVER chain,
             p.event) AS expected_hash
    FROM piece p WINDOW chain AS (PARTITION BY p.lane ORDER BY p.seq)
  ), next AS (
    SELECT r.lane, r.seq, r.hash FROM rows r WHERE (SELECT count(*) FROM rows) = p_limit
    ORDER BY r.lane DESC, r.seq DESC LIMIT 1
  ), findings AS (
    SELECT r.account_id, 'operator_log_unchanged' AS rule,
           format('event %s of lane %s does not match the event and the events before it', r.seq, r.lane) AS detail
    FROM rows r WHERE r.hash <> r.expected_hash OR r.seq <> r.expected_seq
    UNION ALL
    SELECT '', 'operator_log_complete', format('the last event of lane %s is %s, the log ends with %s', c.lane,
             c.last_seq, coalesce(l.seq, 0))
    FROM operator_chains c
    LEFT JOIN LATERAL (SELECT e.seq, e.hash FROM operator_events e WHERE e.lane = c.lane
      ORDER BY e.seq DESC LIMIT 1) l ON true
    WHERE NOT EXISTS (SELECT 1 FROM next)
      AND (c.last_seq, c.last_hash) IS DISTINCT FROM (coalesce(l.seq, 0), coalesce(l.hash, '\x'))
  )
  SELECT '', '', '', (SELECT count(*) FROM rows), n.lane, n.seq, n.hash
  FROM (VALUES (1)) AS one LEFT JOIN next n ON true
  UNION ALL
  (SELECT f.account_id, f.rule, f.detail, 0, NULL, NULL, NULL FROM findings f LIMIT p_max_findings);
END
$$;
