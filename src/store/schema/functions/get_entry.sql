-- The ledger row with this id, if the account has it. An empty account matches every account.
CREATE OR REPLACE FUNCTION get_entry(p_lane smallint, p_account_id text, p_id text, p_month integer)
  RETURNS SETOF priced_ledger
  LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path FROM CURRENT
  -- One plan for all partitions, of which a call reads one.
  SET plan_cache_mode = force_generic_plan
AS $$
BEGIN
  RETURN QUERY SELECT l.* FROM priced_ledger l
    WHERE l.lane = p_lane AND l.id = p_id AND l.month = p_month AND p_account_id IN ('', l.account_id);
END
$$;
