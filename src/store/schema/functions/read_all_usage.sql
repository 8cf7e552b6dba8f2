-- The usage of all accounts of some lanes, as read_usage returns it for one account, by account if wanted.
CREATE OR REPLACE FUNCTION read_all_usage(
  p_lanes smallint[], p_starts integer[], p_end integer, p_by_account boolean, p_by_key boolean, p_by_model boolean,
  p_by_user boolean, p_after text, p_limit bigint
) RETURNS TABLE (
    start integer, account_id text, key_id text, model text, user_id text, requests bigint, input bigint,
    cached_input bigint, cache_write bigint, output bigint, reasoning bigint, images bigint, image_tokens bigint,
    cost_micros bigint
  )
  LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path FROM CURRENT
  SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
DECLARE
  v_after constant json := nullif(p_after, '');
  c_all constant bigint := 9223372036854775807;
  v_after_start constant integer := coalesce((v_after ->> 0)::integer, -1);
  v_after_account_id constant text := coalesce(v_after ->> 1, '');
  v_after_key_id constant text := coalesce(v_after ->> 2, '');
  v_after_model constant text := coalesce(v_after ->> 3, '');
  v_after_user_id constant text := coalesce(v_after ->> 4, '');
BEGIN
  RETURN QUERY
  WITH groups AS (
    SELECT g.start, CASE WHEN p_by_account THEN a.id ELSE '' END COLLATE "C" AS account_id, g.key_id COLLATE "C" AS key_id,
           g.model COLLATE "C" AS model, g.user_id COLLATE "C" AS user_id, sum(g.requests)::bigint AS requests,
           sum(g.input)::bigint AS input, sum(g.cached_input)::bigint AS cached_input,
           sum(g.cache_write)::bigint AS cache_write, sum(g.output)::bigint AS output,
           sum(g.reasoning)::bigint AS reasoning, sum(g.images)::bigint AS images,
           sum(g.image_tokens)::bigint AS image_tokens, sum(g.cost_micros)::bigint AS cost_micros
    FROM accounts a
    CROSS JOIN LATERAL read_usage(a.lane, a.id, p_starts, p_end, p_by_key, p_by_model, p_by_user, '', '', c_all, c_all) g
    WHERE a.lane = ANY (p_lanes) AND g.start IS NOT NULL
    GROUP BY 1, 2, 3, 4, 5
  )
  SELECT g.start, g.account_id::text, g.key_id::text, g.model::text, g.user_id::text, g.requests, g.input,
         g.cached_input, g.cache_write, g.output, g.reasoning, g.images, g.image_tokens, g.cost_micros
  FROM groups g
  WHERE (g.start, g.account_id, g.key_id, g.model, g.user_id)
    > (v_after_start, v_after_account_id, v_after_key_id, v_after_model, v_after_user_id)
  ORDER BY 1, 2, 3, 4, 5 LIMIT p_limit;
END
$$;
