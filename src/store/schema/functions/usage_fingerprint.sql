-- A number for a part of the usage. The numbers of the parts of a sum add up to the number of the sum, and sums that differ
-- in any field have different numbers, except by chance. So totals that were read in any order can be compared.
-- In SQL, so that PostgreSQL inlines it.
CREATE OR REPLACE FUNCTION usage_fingerprint(
  p_quarter integer, p_key_id text, p_model text, p_user_id text, p_price_version integer, p_price_tier integer,
  p_price_list_version integer, p_upstream text, p_requests bigint, p_input bigint, p_cached_input bigint, p_cache_write bigint,
  p_output bigint, p_reasoning bigint, p_images bigint, p_image_tokens bigint, p_cost_micros bigint, p_cache_write_1h bigint,
  p_upstream_cost_micros bigint, p_uncosted_micros bigint
) RETURNS numeric
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN (hashtextextended(concat_ws(':', p_quarter, p_price_version, p_price_tier, p_price_list_version, octet_length(p_key_id), p_key_id,
      octet_length(p_model), p_model, octet_length(p_user_id), p_user_id, p_upstream), 0) & 2147483647)::numeric
    * (p_requests + p_input * 1000003::numeric + p_cached_input * 2000003::numeric + p_cache_write * 3000017::numeric
      + p_output * 4000037::numeric + p_reasoning * 5000011::numeric + p_images * 6000011::numeric
      + p_image_tokens * 7000003::numeric + p_cost_micros * 8000009::numeric + p_cache_write_1h * 9000011::numeric
      + p_upstream_cost_micros * 10000019::numeric + p_uncosted_micros * 11000027::numeric);
