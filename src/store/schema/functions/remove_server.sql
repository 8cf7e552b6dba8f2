-- Removes a server that stops. Its remaining holds are then abandoned.
CREATE OR REPLACE FUNCTION remove_server(p_server_id text) RETURNS void
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
BEGIN
  DELETE FROM servers s WHERE s.id = p_server_id;
END
$$;
