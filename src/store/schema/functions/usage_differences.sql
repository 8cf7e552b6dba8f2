-- The sums of the usage of an account that differ from its ledger entries, described in words. Without archived entries and
-- their usage.
CREATE OR REPLACE FUNCTION usage_differences(p_lane smallint, p_account_id text, p_limit integer) RETURNS SETOF text
  LANGUAGE plpgsql STABLE
AS $$
BEGIN
  RETURN QUERY
  WITH entries AS (
    SELECT e.quarter, e.key_id, e.model, e.user_id, e.price_version, e.price_tier, e.price_list_version, e.upstream, sum(e.requests) AS requests,
           sum(e.input + e.cached_input + e.cache_write + e.output + e.reasoning + e.images + e.image_tokens
             + e.cache_write_1h) AS units,
           sum(e.cost_micros) AS cost_micros,
           sum(e.upstream_cost_micros) AS upstream_cost_micros, sum(e.uncosted_micros) AS uncosted_micros
    FROM usage_of_entries(p_lane, p_account_id, 0, (SELECT a.last_seq FROM accounts a
      WHERE a.lane = p_lane AND a.id = p_account_id)) e
    WHERE e.account_id = p_account_id AND e.requests > 0
    GROUP BY e.quarter, e.key_id, e.model, e.user_id, e.price_version, e.price_tier, e.price_list_version, e.upstream
  ), stored AS (
    SELECT u.quarter, u.key_id, u.model, u.user_id, u.price_version, u.price_tier, u.price_list_version, u.upstream, u.requests,
           u.input + u.cached_input + u.cache_write + u.output + u.reasoning + u.images + u.image_tokens
             + u.cache_write_1h AS units,
           u.cost_micros, u.upstream_cost_micros, u.uncosted_micros
    FROM usage_quarters u WHERE u.lane = p_lane AND u.account_id = p_account_id AND u.quarter >= coalesce(
      (SELECT h.end_quarter FROM archived_heads(p_lane, p_account_id, p_account_id) h), 0)
  )
  SELECT format('%s, key %s, model %s: %s requests, %s units, %s micros; in the ledger %s, %s, %s',
           to_timestamp(coalesce(s.quarter, e.quarter) * 900.0), coalesce(s.key_id, e.key_id),
           coalesce(s.model, e.model), coalesce(s.requests, 0), coalesce(s.units, 0), coalesce(s.cost_micros, 0),
           coalesce(e.requests, 0), coalesce(e.units, 0), coalesce(e.cost_micros, 0))
  FROM stored s FULL JOIN entries e ON (e.quarter, e.price_version, e.price_tier, e.price_list_version)
      = (s.quarter, s.price_version, s.price_tier, s.price_list_version)
    AND e.key_id = s.key_id AND e.model = s.model AND e.user_id = s.user_id AND e.upstream = s.upstream
  WHERE (s.requests, s.units, s.cost_micros, s.upstream_cost_micros, s.uncosted_micros)
    IS DISTINCT FROM (e.requests, e.units, e.cost_micros, e.upstream_cost_micros, e.uncosted_micros)
  ORDER BY coalesce(s.quarter, e.quarter) LIMIT p_limit;
END
$$;
