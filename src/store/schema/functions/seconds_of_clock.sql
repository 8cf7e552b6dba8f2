-- The time by the clock of the database, in seconds since 1970.
CREATE OR REPLACE FUNCTION seconds_of_clock() RETURNS TABLE (seconds bigint)
  LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT
AS $$
BEGIN
  seconds := floor(extract(epoch FROM clock_timestamp()));
  RETURN NEXT;
END
$$;
