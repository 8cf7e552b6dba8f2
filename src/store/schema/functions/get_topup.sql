-- The top-up with this id, of this account if one is given.
CREATE OR REPLACE FUNCTION get_topup(p_lane smallint, p_account_id text, p_id text) RETURNS SETOF topups
  LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT
AS $$
BEGIN
  RETURN QUERY SELECT t.* FROM topups t WHERE t.lane = p_lane AND t.id = p_id AND p_account_id IN ('', t.account_id);
END
$$;
