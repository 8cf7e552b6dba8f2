-- The accounts of a lane that used a model from quarter p_from until before p_end, with their names.
CREATE OR REPLACE FUNCTION accounts_with_model(p_lane smallint, p_model text, p_from integer, p_end integer)
  RETURNS TABLE (account_id text, account_name text)
  LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT
AS $$
BEGIN
  RETURN QUERY SELECT a.id, a.name FROM accounts a
    WHERE a.lane = p_lane AND EXISTS (
      SELECT 1 FROM usage_quarters u WHERE u.lane = a.lane AND u.account_id = a.id AND u.quarter >= p_from AND u.quarter < p_end
        AND u.model = p_model)
    ORDER BY a.id;
END
$$;
