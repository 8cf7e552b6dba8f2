-- Removes all servers. For a server with exclusive use of the database.
CREATE OR REPLACE FUNCTION remove_servers() RETURNS void
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
BEGIN
  DELETE FROM servers;
END
$$;
