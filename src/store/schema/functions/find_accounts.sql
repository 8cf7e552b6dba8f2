-- The accounts with this external id, or else, if p_with_names, at most two accounts with this name. Old rows of lanes that another cell
-- owns do not count.
CREATE OR REPLACE FUNCTION find_accounts(p_reference text, p_with_names boolean) RETURNS SETOF account_views
  LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT
AS $$
BEGIN
  RETURN QUERY
    SELECT a.* FROM account_views a JOIN account_profiles p ON p.lane = a.lane AND p.account_id = a.id
    WHERE p.external_id = p_reference AND NOT EXISTS (SELECT 1 FROM lanes l WHERE l.lane = a.lane AND NOT l.is_owned);
  IF NOT FOUND AND p_with_names THEN
    RETURN QUERY
      SELECT a.* FROM account_views a
      WHERE lower(a.name) COLLATE "C" = lower(p_reference) AND a.name = p_reference
        AND NOT EXISTS (SELECT 1 FROM lanes l WHERE l.lane = a.lane AND NOT l.is_owned) LIMIT 2;
  END IF;
END
$$;
