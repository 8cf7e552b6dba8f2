-- The prices of an account at a version: the last row of each model, and of all models.
CREATE OR REPLACE FUNCTION get_account_prices(p_lane smallint, p_account_id text, p_version integer)
  RETURNS SETOF account_price_view
  LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT
AS $$
BEGIN
  RETURN QUERY
  SELECT l.version, l.model, l.discount, prices_json(l.rates)::text, l.effective_from FROM (
    SELECT DISTINCT ON (a.model) a.* FROM account_prices a
    WHERE a.lane = p_lane AND a.account_id = p_account_id AND a.version <= p_version
    ORDER BY a.model, a.version DESC
  ) l WHERE num_nonnulls(l.discount, l.rates) > 0;
END
$$;
