-- The first p_limit accounts of a lane after p_after, with their names, and whether they used a model from quarter p_from until before
-- p_end.
CREATE OR REPLACE FUNCTION accounts_with_model(
  p_lane smallint, p_model text, p_from integer, p_end integer, p_after text, p_limit integer
) RETURNS TABLE (account_id text, account_name text, has_used boolean)
  LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT
AS $$
BEGIN
  PERFORM require_lane(p_lane);
  -- As a value, the query about the usage reads the sums of one account; EXISTS may read those of all.
  RETURN QUERY SELECT a.id, a.name, (
      SELECT true FROM usage_quarters u WHERE u.lane = p_lane AND u.account_id = a.id AND u.quarter >= p_from AND u.quarter < p_end
        AND u.model = p_model LIMIT 1) IS NOT NULL
    FROM (SELECT i.id, i.name FROM accounts i WHERE i.lane = p_lane AND i.id > p_after ORDER BY i.id LIMIT p_limit) a
    ORDER BY a.id;
END
$$;
