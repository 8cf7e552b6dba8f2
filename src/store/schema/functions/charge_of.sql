-- What a generation costs at a version of its model's prices, rounded up once after all tokens are added.
CREATE OR REPLACE FUNCTION charge_of(p_row ledger, p_prices price_versions) RETURNS numeric
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN ceil((p_row.input::numeric * p_prices.input + p_row.cached_input::numeric * p_prices.cached_input
      + p_row.cache_write::numeric * p_prices.cache_write + p_row.output::numeric * p_prices.output
      + p_row.reasoning::numeric * p_prices.reasoning) / 1000000)
    + p_row.images::numeric * p_prices.image + p_prices.request;
