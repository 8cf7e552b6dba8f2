-- The credits and adjustments of a lane, or of one account of it, from one time until before another, with the names of
-- accounts: at most p_limit, after entry p_seq of p_after_id.
CREATE OR REPLACE FUNCTION export_movements(
  p_lane smallint, p_account_id text, p_from timestamptz, p_to timestamptz, p_after_id text, p_seq bigint,
  p_limit integer
) RETURNS TABLE (
    account_id text, account_name text, seq bigint, id text, kind entry_kind, amount_micros bigint, reason text,
    created_at timestamptz, is_promotional boolean
  )
  LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path FROM CURRENT
  SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off
AS $$
BEGIN
  PERFORM require_lane(p_lane);
  RETURN QUERY
  SELECT l.account_id, a.name, l.seq, l.id, l.kind, l.amount_micros, l.reason, l.created_at,
         coalesce((SELECT g.is_promotional FROM grants g WHERE g.lane = l.lane AND g.account_id = l.account_id AND g.seq = l.seq), false)
  FROM ledger l JOIN accounts a ON a.lane = l.lane AND a.id = l.account_id
  WHERE l.lane = p_lane AND l.kind <> 'generation' AND (l.account_id, l.seq) > (p_after_id, p_seq)
    AND l.account_id >= p_account_id AND (p_account_id = '' OR l.account_id = p_account_id)
    AND l.created_at >= p_from AND l.created_at < p_to
  ORDER BY l.account_id, l.seq LIMIT p_limit;
END
$$;
