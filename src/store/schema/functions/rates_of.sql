-- The prices of a call with this input: those of the highest bound that it exceeds. In SQL, so that PostgreSQL inlines it.
CREATE OR REPLACE FUNCTION rates_of(p_rates price_rates[], p_input_tokens integer) RETURNS SETOF price_rates
  LANGUAGE sql IMMUTABLE PARALLEL SAFE ROWS 1
AS $$
  SELECT r.* FROM unnest(p_rates) r WHERE r.above_input_tokens < greatest(p_input_tokens, 1)
  ORDER BY r.above_input_tokens DESC LIMIT 1
$$;
