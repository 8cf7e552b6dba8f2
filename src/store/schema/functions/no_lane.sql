-- The chain of the operator events that concern no account: the number after the last lane.
CREATE OR REPLACE FUNCTION no_lane() RETURNS smallint
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
  SELECT 1024::smallint
$$;
