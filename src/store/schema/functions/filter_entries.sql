-- The entries of an account from p_first until before p_end that match the filters, newest first. An empty filter matches
-- all. Movements and the entries of a key have indexes; otherwise each entry of the range is read.
CREATE OR REPLACE FUNCTION filter_entries(
  p_lane smallint, p_account_id text, p_kind text, p_key_id text, p_model text, p_first bigint, p_end bigint,
  p_limit integer
) RETURNS SETOF priced_ledger
  LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path FROM CURRENT
  -- Plans for all partitions are made once for a session.
  SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off
AS $$
BEGIN
  IF p_kind NOT IN ('', 'generation') THEN
    RETURN QUERY SELECT l.* FROM priced_ledger l
      WHERE l.lane = p_lane AND l.account_id = p_account_id AND l.seq >= p_first AND l.seq < p_end
        AND l.kind <> 'generation' AND l.kind = p_kind::entry_kind AND p_key_id IN ('', l.key_id)
        AND p_model IN ('', l.model)
      ORDER BY l.seq DESC LIMIT p_limit;
  ELSIF p_key_id <> '' THEN
    -- Only the index for keys has this order. With an equal key_id, the primary key would have it too: in large partitions,
    -- PostgreSQL estimates the same cost, and then reads each entry of the account.
    RETURN QUERY SELECT l.* FROM priced_ledger l
      WHERE l.lane = p_lane AND l.account_id = p_account_id AND (l.key_id, l.seq) >= (p_key_id, p_first)
        AND (l.key_id, l.seq) < (p_key_id, p_end) AND l.kind = 'generation' AND p_model IN ('', l.model)
      ORDER BY l.key_id DESC, l.seq DESC LIMIT p_limit;
  ELSE
    RETURN QUERY SELECT l.* FROM priced_ledger l
      WHERE l.lane = p_lane AND l.account_id = p_account_id AND l.seq >= p_first AND l.seq < p_end
        AND (p_kind = '' OR l.kind = 'generation') AND p_model IN ('', l.model)
      ORDER BY l.seq DESC LIMIT p_limit;
  END IF;
END
$$;
