-- The fingerprint of at most p_limit sums of the usage of an account that is not archived, before quarter p_end, after
-- p_position in the order of the primary key, and the position of the last one; NULL at the end. Positions are JSON;
-- empty for the start.
CREATE OR REPLACE FUNCTION stored_usage(
  p_lane smallint, p_account_id text, p_end integer, p_position text, p_limit integer
) RETURNS TABLE (fingerprint numeric, next text)
  LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path FROM CURRENT
  SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off
AS $$
DECLARE
  v_position constant json := nullif(p_position, '');
  v_quarter constant integer := coalesce((v_position ->> 0)::integer,
    (SELECT h.end_quarter FROM archived_heads(p_lane, p_account_id, p_account_id) h), -1);
  v_key_id constant text := coalesce(v_position ->> 1, '');
  v_model constant text := coalesce(v_position ->> 2, '');
  v_user_id constant text := coalesce(v_position ->> 3, '');
  v_price_version constant integer := coalesce((v_position ->> 4)::integer, 0);
  v_price_tier constant integer := coalesce((v_position ->> 5)::integer, 0);
  v_price_list_version constant integer := coalesce((v_position ->> 6)::integer, 0);
  v_upstream constant text := coalesce(v_position ->> 7, '');
BEGIN
  RETURN QUERY
  WITH piece AS MATERIALIZED (
    SELECT u.*, row_number() OVER () AS number FROM (
      SELECT * FROM usage_quarters q
      WHERE q.lane = p_lane AND q.account_id = p_account_id AND q.quarter < p_end
        AND (q.quarter, q.key_id, q.model, q.user_id, q.price_version, q.price_tier, q.price_list_version, q.upstream)
          > (v_quarter, v_key_id, v_model, v_user_id, v_price_version, v_price_tier, v_price_list_version, v_upstream)
      ORDER BY q.quarter, q.key_id, q.model, q.user_id, q.price_version, q.price_tier, q.price_list_version, q.upstream LIMIT p_limit
    ) u
  )
  SELECT coalesce(sum(usage_fingerprint(p.quarter, p.key_id, p.model, p.user_id, p.price_version, p.price_tier, p.price_list_version,
           p.upstream, p.requests, p.input, p.cached_input, p.cache_write, p.output, p.reasoning, p.images, p.image_tokens, p.cost_micros,
           p.cache_write_1h, p.upstream_cost_micros, p.uncosted_micros)), 0),
         (SELECT json_build_array(l.quarter, l.key_id, l.model, l.user_id, l.price_version, l.price_tier, l.price_list_version, l.upstream)::text FROM piece l
          WHERE l.number = p_limit)
  FROM piece p;
END
$$;
