-- The calling key; a row of NULLs for other callers. The caller is proven.
CREATE OR REPLACE FUNCTION key_of_caller(p_caller caller, p_lane smallint) RETURNS keys
  LANGUAGE plpgsql
AS $$
DECLARE
  v_key keys;
BEGIN
  IF p_caller.kind = 'key' THEN
    SELECT * INTO STRICT v_key FROM keys k WHERE k.lane = p_lane AND k.id = p_caller.id;
  END IF;
  RETURN v_key;
END
$$;
