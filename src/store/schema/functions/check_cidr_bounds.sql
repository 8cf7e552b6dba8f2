-- Refuses address ranges of a key that do not lie within one of those of the calling key.
CREATE OR REPLACE FUNCTION check_cidr_bounds(p_caller cidr[], p_cidrs cidr[]) RETURNS void
  LANGUAGE plpgsql
AS $$
BEGIN
  IF EXISTS (SELECT 1 FROM unnest(p_cidrs) c WHERE NOT EXISTS (SELECT 1 FROM unnest(p_caller) a WHERE c <<= a)) THEN
    PERFORM refuse('invalid_argument',
      format('must lie within the addresses of the calling key: %s', array_to_string(p_caller, ', ')),
      '{"field":"allowed_cidrs"}');
  END IF;
END
$$;
