-- Removes all servers: for a server that has the database to itself.
CREATE OR REPLACE FUNCTION forget_servers() RETURNS void
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
BEGIN
  DELETE FROM servers;
END
$$;
