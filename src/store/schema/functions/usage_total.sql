-- The fingerprint of the sums of an account from quarter p_from on.
CREATE OR REPLACE FUNCTION usage_total(p_lane smallint, p_account_id text, p_from integer) RETURNS numeric
  LANGUAGE plpgsql STABLE
  SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
BEGIN
  RETURN (SELECT coalesce(sum(usage_fingerprint(q.quarter, q.key_id, q.model, q.user_id, q.price_version, q.price_tier,
      q.price_list_version, q.upstream, q.requests, q.input, q.cached_input, q.cache_write, q.output, q.reasoning, q.images,
      q.image_tokens, q.cost_micros, q.cache_write_1h, q.upstream_cost_micros, q.uncosted_micros)), 0)
    FROM usage_quarters q WHERE q.lane = p_lane AND q.account_id = p_account_id AND q.quarter >= p_from);
END
$$;
