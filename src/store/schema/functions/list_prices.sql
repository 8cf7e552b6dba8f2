-- A page of the prices of a model, latest first. A p_before of 0 means the first page.
CREATE OR REPLACE FUNCTION list_prices(p_model text, p_before integer, p_limit integer)
  RETURNS TABLE (model text, version integer, prices text, effective_from timestamptz)
  LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT
AS $$
BEGIN
  RETURN QUERY SELECT v.model, v.version, prices_json(v.rates)::text, v.effective_from FROM price_versions v
    WHERE v.model = p_model AND v.version < CASE p_before WHEN 0 THEN 2147483647 ELSE p_before END
    ORDER BY v.version DESC LIMIT p_limit;
END
$$;
