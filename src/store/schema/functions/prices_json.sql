-- Prices as the API writes them. NULL without prices.
CREATE OR REPLACE FUNCTION prices_json(p_rates price_rates[]) RETURNS jsonb
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN to_jsonb(p_rates[1]) - 'above_input_tokens' || CASE cardinality(p_rates) WHEN 1 THEN '{}'
    ELSE jsonb_build_object('tiers', to_jsonb(p_rates[2:])) END;
