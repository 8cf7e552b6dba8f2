-- The plans that have limits.
CREATE OR REPLACE FUNCTION limited_plans() RETURNS text[]
  LANGUAGE plpgsql STABLE
AS $$
BEGIN
  RETURN ARRAY(SELECT DISTINCT l.owner_id FROM limits l WHERE l.lane = 1024);
END
$$;
