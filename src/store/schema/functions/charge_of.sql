-- What a generation costs at a version of its model's prices, rounded up once after all tokens are added.
CREATE OR REPLACE FUNCTION charge_of(
  p_input integer, p_cached_input integer, p_cache_write integer, p_output integer, p_reasoning integer,
  p_images integer, p_prices price_versions
) RETURNS numeric
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN ceil((p_input::numeric * p_prices.input + p_cached_input::numeric * p_prices.cached_input
      + p_cache_write::numeric * p_prices.cache_write + p_output::numeric * p_prices.output
      + p_reasoning::numeric * p_prices.reasoning) / 1000000)
    + p_images::numeric * p_prices.image + p_prices.request;
