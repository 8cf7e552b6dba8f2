-- The current quarter of an hour, by the clock of the database, in quarters since 1970.
CREATE OR REPLACE FUNCTION quarter_of_clock() RETURNS TABLE (quarter integer)
  LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT
AS $$
BEGIN
  quarter := floor(extract(epoch FROM clock_timestamp()) / 900);
  RETURN NEXT;
END
$$;
