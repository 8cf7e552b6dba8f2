-- What a generation costs at the prices of a tier after a discount, rounded up once after all tokens are added.
CREATE OR REPLACE FUNCTION charge_of(
  p_input integer, p_cached_input integer, p_cache_write integer, p_cache_write_1h integer, p_output integer, p_reasoning integer,
  p_images integer, p_rates price_rates, p_discount integer
) RETURNS numeric
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN ceil((p_input::numeric * discounted(p_rates.input, p_discount)
      + p_cached_input::numeric * discounted(p_rates.cached_input, p_discount)
      + (p_cache_write - p_cache_write_1h)::numeric * discounted(p_rates.cache_write, p_discount)
      + p_cache_write_1h::numeric * discounted(p_rates.cache_write_1h, p_discount)
      + p_output::numeric * discounted(p_rates.output, p_discount)
      + p_reasoning::numeric * discounted(p_rates.reasoning, p_discount)) / 1000000)
    + p_images::numeric * discounted(p_rates.image, p_discount) + discounted(p_rates.request, p_discount);
