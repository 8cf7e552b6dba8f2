-- The sums of the usage of a lane, or of one account of it, from quarter p_from until before p_end, with the names of
-- accounts and the prices: at most p_limit, in the order of the primary key, after p_position (JSON; empty for the start). List prices
-- are those of the model at that time: of the highest tier that each call of a sum has certainly reached, because the tiers of an
-- account's own prices may differ.
CREATE OR REPLACE FUNCTION export_usage(
  p_lane smallint, p_account_id text, p_from integer, p_end integer, p_position text, p_limit integer
) RETURNS TABLE (
    account_id text, account_name text, quarter integer, key_id text, model text, user_id text, price_version integer,
    requests bigint, input bigint, cached_input bigint, cache_write bigint, output bigint, reasoning bigint,
    images bigint, image_tokens bigint, cost_micros bigint, input_price bigint, cached_input_price bigint,
    cache_write_price bigint, cache_write_1h_price bigint, output_price bigint, reasoning_price bigint, image_price bigint, request_price bigint,
    cache_write_1h bigint, price_tier integer, price_list_version integer, discount integer,
    upstream text, upstream_cost_micros bigint, uncosted_micros bigint, user_name text,
    input_list_price bigint, cached_input_list_price bigint, cache_write_list_price bigint, cache_write_1h_list_price bigint,
    output_list_price bigint, reasoning_list_price bigint, image_list_price bigint, request_list_price bigint
  )
  LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path FROM CURRENT
  SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
DECLARE
  v_position constant json := nullif(p_position, '');
  v_first_id constant text := coalesce(v_position ->> 0, p_account_id);
  v_left integer := p_limit;
  v_count integer;
  v_quarter integer;
  v_key_id text;
  v_model text;
  v_user_id text;
  v_price_version integer;
  v_price_tier integer;
  v_price_list_version integer;
  v_upstream text;
  r record;
BEGIN
  PERFORM require_lane(p_lane);
  FOR r IN
    SELECT a.id, a.name FROM accounts a
    WHERE a.lane = p_lane AND a.id >= v_first_id AND (p_account_id = '' OR a.id = p_account_id) ORDER BY a.id
  LOOP
    IF r.id = v_position ->> 0 THEN
      v_quarter := v_position ->> 1;
      v_key_id := v_position ->> 2;
      v_model := v_position ->> 3;
      v_user_id := v_position ->> 4;
      v_price_version := v_position ->> 5;
      v_price_tier := v_position ->> 6;
      v_price_list_version := v_position ->> 7;
      v_upstream := v_position ->> 8;
    ELSE
      -- No key has an empty id, so this position is before every sum of its quarter.
      v_quarter := p_from;
      v_key_id := '';
      v_model := '';
      v_user_id := '';
      v_price_version := 0;
      v_price_tier := 0;
      v_price_list_version := 0;
      v_upstream := '';
    END IF;
    RETURN QUERY
    SELECT r.id, r.name, u.quarter, u.key_id::text, u.model::text, u.user_id::text, u.price_version, u.requests, u.input,
           u.cached_input, u.cache_write, u.output, u.reasoning, u.images, u.image_tokens, u.cost_micros,
           p.input::bigint, p.cached_input::bigint, p.cache_write::bigint, p.cache_write_1h::bigint, p.output::bigint,
           p.reasoning::bigint, p.image::bigint, p.request::bigint, u.cache_write_1h, u.price_tier,
           u.price_list_version, d.discount, u.upstream::text, u.upstream_cost_micros, u.uncosted_micros,
           CASE u.user_id WHEN '' THEN '' ELSE coalesce((SELECT n.name::text FROM end_users n
             WHERE n.lane = p_lane AND n.account_id = r.id AND n.user_id = u.user_id), u.user_id) END,
           l.input::bigint, l.cached_input::bigint, l.cache_write::bigint, l.cache_write_1h::bigint, l.output::bigint,
           l.reasoning::bigint, l.image::bigint, l.request::bigint
    FROM usage_quarters u
    LEFT JOIN price_versions v ON v.model = u.model COLLATE "default" AND v.version = u.price_version
    LEFT JOIN account_prices d ON d.lane = p_lane AND d.account_id = r.id AND d.version = u.price_list_version
    LEFT JOIN LATERAL unnest(coalesce(d.rates, v.rates)) p ON p.above_input_tokens = u.price_tier
    LEFT JOIN LATERAL rates_of(v.rates, u.price_tier + 1) l ON true
    WHERE u.lane = p_lane AND u.account_id = r.id AND u.quarter < p_end
      AND (u.quarter, u.key_id, u.model, u.user_id, u.price_version, u.price_tier, u.price_list_version, u.upstream)
        > (v_quarter, v_key_id, v_model, v_user_id, v_price_version, v_price_tier, v_price_list_version, v_upstream)
    ORDER BY u.quarter, u.key_id, u.model, u.user_id, u.price_version, u.price_tier, u.price_list_version, u.upstream LIMIT v_left;
    GET DIAGNOSTICS v_count = ROW_COUNT;
    v_left := v_left - v_count;
    EXIT WHEN v_left = 0;
  END LOOP;
END
$$;
