-- The grants of an account that have a rest, in the order in which charges take them.
CREATE OR REPLACE FUNCTION list_grants(p_lane smallint, p_account_id text)
  RETURNS TABLE (entry_id text, amount_micros bigint, rest_micros bigint, expires_at timestamptz, is_promotional boolean)
  LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT
AS $$
BEGIN
  RETURN QUERY SELECT g.entry_id, g.amount_micros, g.rest_micros, nullif(g.expires_at, 'infinity'), g.is_promotional
    FROM grant_rests(p_lane, p_account_id) g WHERE g.rest_micros > 0;
END
$$;
