-- The last archived entry of each account of a lane from p_first to p_last; without p_last, to the end of the lane.
CREATE OR REPLACE FUNCTION archived_heads(p_lane smallint, p_first text, p_last text) RETURNS SETOF archived_ledger
  LANGUAGE plpgsql STABLE
AS $$
DECLARE
  v_month constant integer := (SELECT max(a.month) FROM ledger_archives a WHERE a.removed_at IS NOT NULL);
BEGIN
  IF v_month IS NULL THEN
    RETURN;
  END IF;
  RETURN QUERY SELECT DISTINCT ON (h.account_id) h.* FROM archived_ledger h
    WHERE h.lane = p_lane AND h.account_id >= p_first AND (p_last IS NULL OR h.account_id <= p_last)
      AND h.month <= v_month
    ORDER BY h.account_id, h.month DESC;
END
$$;
