-- A page of the versions of an account's prices, latest first. A p_before of 0 means the first page.
CREATE OR REPLACE FUNCTION list_account_prices(p_lane smallint, p_account_id text, p_before integer, p_limit integer)
  RETURNS SETOF account_price_view
  LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT
AS $$
BEGIN
  RETURN QUERY SELECT a.version, a.model, a.discount, prices_json(a.rates)::text, a.effective_from FROM account_prices a
    WHERE a.lane = p_lane AND a.account_id = p_account_id AND a.version < CASE p_before WHEN 0 THEN 2147483647 ELSE p_before END
    ORDER BY a.version DESC LIMIT p_limit;
END
$$;
