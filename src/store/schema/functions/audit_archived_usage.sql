-- Compares the usage of the archived entries of a lane with what it was when they were archived: at most p_limit sums, in the
-- order of the primary key, after p_position. p_sum is the fingerprint of the account of that position up to there.
--
-- Returns one row per difference. The first row has an empty rule, and the position of the next piece: none at the end of the
-- lane, and none where no entry is archived. Positions are JSON; empty for the start.
CREATE OR REPLACE FUNCTION audit_archived_usage(
  p_lane smallint, p_position text, p_sum numeric, p_limit integer, p_max_findings integer
) RETURNS TABLE (account_id text, rule text, detail text, next text, next_sum numeric)
  LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path FROM CURRENT
  SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off
AS $$
DECLARE
  v_position constant json := nullif(p_position, '');
  v_account_id constant text := coalesce(v_position ->> 0, '');
  v_quarter constant integer := coalesce((v_position ->> 1)::integer, -1);
  v_key_id constant text := coalesce(v_position ->> 2, '');
  v_model constant text := coalesce(v_position ->> 3, '');
  v_user_id constant text := coalesce(v_position ->> 4, '');
  v_price_version constant integer := coalesce((v_position ->> 5)::integer, 0);
  v_price_tier constant integer := coalesce((v_position ->> 6)::integer, 0);
  v_price_list_version constant integer := coalesce((v_position ->> 7)::integer, 0);
  v_upstream constant text := coalesce(v_position ->> 8, '');
BEGIN
  IF NOT EXISTS (SELECT 1 FROM ledger_archives a WHERE a.removed_at IS NOT NULL) THEN
    RETURN QUERY SELECT '', '', '', NULL::text, NULL::numeric;
    RETURN;
  END IF;
  RETURN QUERY
  WITH piece AS MATERIALIZED (
    SELECT u.*, row_number() OVER () AS number FROM (
      SELECT * FROM usage_quarters q
      WHERE q.lane = p_lane AND (q.account_id, q.quarter, q.key_id, q.model, q.user_id, q.price_version, q.price_tier, q.price_list_version, q.upstream)
        > (v_account_id, v_quarter, v_key_id, v_model, v_user_id, v_price_version, v_price_tier, v_price_list_version, v_upstream)
      ORDER BY q.account_id, q.quarter, q.key_id, q.model, q.user_id, q.price_version, q.price_tier, q.price_list_version, q.upstream LIMIT p_limit
    ) u
  ), unfinished AS MATERIALIZED (
    SELECT l.* FROM piece l WHERE l.number = p_limit
  ), heads AS MATERIALIZED (
    SELECT h.* FROM archived_heads(p_lane, v_account_id, (SELECT n.account_id FROM unfinished n)) h
  ), sums AS MATERIALIZED (
    SELECT h.account_id, h.usage_fingerprint AS expected,
           CASE h.account_id WHEN v_account_id THEN p_sum ELSE 0 END + coalesce(sum(
             usage_fingerprint(p.quarter, p.key_id, p.model, p.user_id, p.price_version, p.price_tier, p.price_list_version, p.upstream, p.requests, p.input, p.cached_input,
               p.cache_write, p.output, p.reasoning, p.images, p.image_tokens, p.cost_micros, p.cache_write_1h, p.upstream_cost_micros, p.uncosted_micros)), 0) AS fingerprint
    FROM heads h
    LEFT JOIN piece p ON p.account_id = h.account_id AND p.quarter < h.end_quarter
    GROUP BY h.account_id, h.usage_fingerprint
  )
  SELECT '', '', '', (
           SELECT json_build_array(n.account_id, n.quarter, n.key_id, n.model, n.user_id, n.price_version, n.price_tier, n.price_list_version, n.upstream)::text
           FROM unfinished n
         ), coalesce((SELECT s.fingerprint FROM sums s JOIN unfinished n ON n.account_id = s.account_id), 0)
  UNION ALL
  (SELECT s.account_id, 'usage_equals_ledger', 'the usage of the archived entries changed since they were archived', NULL,
          NULL
   FROM sums s
   WHERE s.fingerprint <> s.expected AND s.account_id IS DISTINCT FROM (SELECT n.account_id FROM unfinished n)
     AND NOT usage_equals_ledger(p_lane, s.account_id)
   LIMIT p_max_findings);
END
$$;
