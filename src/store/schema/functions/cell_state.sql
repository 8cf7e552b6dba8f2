-- The lanes that this cell owns, with their epochs, the version of its shared data, and its name if it has one.
CREATE OR REPLACE FUNCTION cell_state() RETURNS TABLE (lanes text, epochs text, shared_version bigint, name text)
  LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT
AS $$
BEGIN
  RETURN QUERY
  SELECT coalesce(string_agg(l.lane::text, ',' ORDER BY l.lane), ''),
         coalesce(string_agg(l.epoch::text, ',' ORDER BY l.lane), ''), (SELECT s.version FROM shared_data s),
         (SELECT n.name FROM cell_name n)
  FROM lanes l WHERE l.is_owned;
END
$$;
