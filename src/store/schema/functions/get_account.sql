-- The account with this id.
CREATE OR REPLACE FUNCTION get_account(p_lane smallint, p_id text) RETURNS SETOF account_views
  LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT
AS $$
BEGIN
  RETURN QUERY SELECT a.* FROM account_views a WHERE a.lane = p_lane AND a.id = p_id;
END
$$;
