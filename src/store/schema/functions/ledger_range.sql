-- The numbers of the entries of an account from one time until before another: from first_seq until before end_seq. NULL
-- means no limit. The range begins after the archived entries.
CREATE OR REPLACE FUNCTION ledger_range(p_lane smallint, p_account_id text, p_from timestamptz, p_to timestamptz)
  RETURNS TABLE (first_seq bigint, end_seq bigint)
  LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path FROM CURRENT
  SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
DECLARE
  v_last bigint := coalesce((SELECT a.last_seq FROM accounts a WHERE a.lane = p_lane AND a.id = p_account_id), 0);
BEGIN
  PERFORM require_lane(p_lane);
  first_seq := CASE WHEN p_from IS NULL THEN
      1 + coalesce((SELECT h.seq FROM archived_heads(p_lane, p_account_id, p_account_id) h), 0)
    ELSE seq_at(p_lane, p_account_id, p_from, v_last) END;
  end_seq := CASE WHEN p_to IS NULL THEN v_last + 1 ELSE seq_at(p_lane, p_account_id, p_to, v_last) END;
  RETURN NEXT;
END
$$;
