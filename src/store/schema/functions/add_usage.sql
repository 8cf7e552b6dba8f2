-- Adds generations to the sums of their quarter of an hour. p_users are the end users that they name, NULL without any. The caller has
-- just written the rows and holds the locks of their lanes.
CREATE OR REPLACE FUNCTION add_usage(p_rows ledger[], p_users end_users[]) RETURNS void
  LANGUAGE plpgsql
AS $$
BEGIN
  IF p_users IS NOT NULL THEN
    INSERT INTO end_users SELECT * FROM unnest(p_users) ON CONFLICT ON CONSTRAINT end_users_pkey DO NOTHING;
    PERFORM name_users(p_rows);
  END IF;
  -- A user without a name of its own on this day counts for "(other)".
  INSERT INTO usage_quarters AS u
  SELECT r.lane, r.account_id, q.quarter, r.key_id, r.model,
         CASE WHEN r.user_id = '' OR EXISTS (SELECT 1 FROM usage_users n WHERE n.lane = r.lane
           AND n.account_id = r.account_id AND n.day = q.quarter / 96 AND n.user_id = r.user_id) THEN r.user_id ELSE '(other)' END,
         r.price_version, count(*), sum(r.input), sum(r.cached_input), sum(r.cache_write), sum(r.output),
         sum(r.reasoning), sum(r.images), sum(r.image_tokens), -sum(r.amount_micros), sum(r.cache_write_1h), r.price_tier,
         r.price_list_version, r.upstream, coalesce(sum(r.upstream_cost_micros), 0),
         coalesce(-sum(r.amount_micros) FILTER (WHERE r.upstream_cost_micros IS NULL), 0)
  FROM unnest(p_rows) r
  CROSS JOIN LATERAL (SELECT floor(extract(epoch FROM r.created_at) / 900)::integer AS quarter) q
  WHERE r.kind = 'generation'
  GROUP BY 1, 2, 3, 4, 5, 6, 7, r.price_tier, r.price_list_version, r.upstream
  ON CONFLICT ON CONSTRAINT usage_quarters_pkey DO UPDATE SET
    requests = u.requests + excluded.requests, input = u.input + excluded.input,
    cached_input = u.cached_input + excluded.cached_input, cache_write = u.cache_write + excluded.cache_write,
    output = u.output + excluded.output, reasoning = u.reasoning + excluded.reasoning,
    images = u.images + excluded.images, image_tokens = u.image_tokens + excluded.image_tokens,
    cost_micros = u.cost_micros + excluded.cost_micros, cache_write_1h = u.cache_write_1h + excluded.cache_write_1h,
    upstream_cost_micros = u.upstream_cost_micros + excluded.upstream_cost_micros,
    uncosted_micros = u.uncosted_micros + excluded.uncosted_micros;
END
$$;
