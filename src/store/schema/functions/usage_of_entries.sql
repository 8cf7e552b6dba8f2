-- The usage of ledger entries, as add_usage counts it: of p_limit entries of a lane after entry p_seq of p_account_id.
-- A user without a sum of its own counts for "(other)". See usage_fingerprint.
CREATE OR REPLACE FUNCTION usage_of_entries(p_lane smallint, p_account_id text, p_seq bigint, p_limit bigint)
  RETURNS TABLE (account_id text, seq bigint, quarter integer, key_id text, model text, user_id text,
    price_version integer, requests bigint, input bigint, cached_input bigint, cache_write bigint, output bigint,
    reasoning bigint, images bigint, image_tokens bigint, cost_micros bigint, cache_write_1h bigint, price_tier integer,
    price_list_version integer, upstream text, upstream_cost_micros bigint, uncosted_micros bigint, fingerprint numeric)
  LANGUAGE plpgsql STABLE
  SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off
AS $$
BEGIN
  RETURN QUERY
  SELECT u.*, CASE u.requests WHEN 0 THEN 0 ELSE usage_fingerprint(u.quarter, u.key_id, u.model, u.user_id, u.price_version, u.price_tier,
           u.price_list_version, u.upstream, u.requests, u.input, u.cached_input, u.cache_write, u.output, u.reasoning, u.images,
           u.image_tokens, u.cost_micros, u.cache_write_1h, u.upstream_cost_micros, u.uncosted_micros) END
  FROM (
    SELECT l.account_id, l.seq, l.quarter, l.key_id, l.model,
           CASE WHEN l.user_id = '' OR EXISTS (SELECT 1 FROM usage_quarters u WHERE u.lane = p_lane
             AND u.account_id = l.account_id AND u.quarter = l.quarter AND u.key_id = l.key_id AND u.model = l.model
             AND u.user_id = l.user_id AND u.price_version = l.price_version
             AND u.price_tier = l.price_tier AND u.price_list_version = l.price_list_version
             AND u.upstream = l.upstream) THEN l.user_id ELSE '(other)' END AS user_id,
           l.price_version, (l.kind = 'generation')::integer::bigint AS requests, l.input::bigint, l.cached_input::bigint,
           l.cache_write::bigint, l.output::bigint, l.reasoning::bigint, l.images::bigint, l.image_tokens::bigint,
           CASE l.kind WHEN 'generation' THEN -l.amount_micros ELSE 0 END AS cost_micros, l.cache_write_1h::bigint, l.price_tier,
           l.price_list_version, l.upstream, coalesce(l.upstream_cost_micros, 0) AS upstream_cost_micros,
           CASE WHEN l.kind = 'generation' AND l.upstream_cost_micros IS NULL THEN -l.amount_micros ELSE 0 END AS uncosted_micros
    FROM (
      SELECT e.*, floor(extract(epoch FROM e.created_at) / 900)::integer AS quarter FROM ledger e
      WHERE e.lane = p_lane AND (e.account_id, e.seq) > (p_account_id, p_seq)
      ORDER BY e.account_id, e.seq LIMIT p_limit
    ) l
    -- Evaluates users once.
    OFFSET 0
  ) u;
END
$$;
