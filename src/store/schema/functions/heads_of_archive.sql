-- The accounts that the archive of this month has entries of, in the order of its file, at most p_limit after p_account_id of
-- p_lane: their last entries in earlier archives, and in this one.
CREATE OR REPLACE FUNCTION heads_of_archive(p_month integer, p_lane smallint, p_account_id text, p_limit integer)
  RETURNS TABLE (lane smallint, account_id text, before_seq bigint, before_balance_micros bigint, before_hash bytea, seq bigint,
    balance_micros bigint, hash bytea)
  LANGUAGE plpgsql STABLE
  SET search_path FROM CURRENT
  SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
BEGIN
  RETURN QUERY
  SELECT h.lane, h.account_id, coalesce(b.seq, 0), coalesce(b.balance_micros, 0), coalesce(b.hash, '\x'), h.seq,
         h.balance_micros, h.hash
  FROM archived_ledger h
  LEFT JOIN LATERAL (SELECT o.* FROM archived_ledger o
    WHERE o.lane = h.lane AND o.account_id = h.account_id AND o.month < p_month ORDER BY o.month DESC LIMIT 1) b ON true
  WHERE h.month = p_month AND (h.lane, h.account_id) > (p_lane, p_account_id)
  ORDER BY h.lane, h.account_id LIMIT p_limit;
END
$$;
