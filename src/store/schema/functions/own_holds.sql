-- The holds of a server in those of a range of lanes that this cell owns. The server releases those that it does not
-- track: they were placed by statements whose result it no longer waited for.
CREATE OR REPLACE FUNCTION own_holds(p_server_id text, p_from smallint, p_to smallint)
  RETURNS TABLE (id text, account_id text)
  LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path FROM CURRENT
  SET enable_seqscan = off
AS $$
BEGIN
  RETURN QUERY SELECT h.id, h.account_id FROM holds h
    WHERE h.lane BETWEEN p_from AND p_to AND h.server_id = p_server_id
      AND NOT EXISTS (SELECT 1 FROM lanes l WHERE l.lane = h.lane AND NOT l.is_owned);
END
$$;
