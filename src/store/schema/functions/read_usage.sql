-- Adds up the usage of an account by period, and by key, model and user if wanted. p_starts are the first quarters of
-- the periods, in order; the last period ends before p_end.
--
-- A statement reads at most p_rows sums, in the order of the primary key, after p_position; the caller adds up what the
-- statements return. The first row of the result has no start: it has the number of the last ledger entry, and the next
-- position, which is NULL at the end. The groups follow in order, at most p_limit, only those after p_after. Positions
-- are JSON.
CREATE OR REPLACE FUNCTION read_usage(
  p_lane smallint, p_account_id text, p_starts integer[], p_end integer, p_by_key boolean, p_by_model boolean,
  p_by_user boolean, p_by_upstream boolean, p_after text, p_position text, p_rows bigint, p_limit bigint
) RETURNS TABLE (
    start integer, key_id text, model text, user_name text, upstream text, requests bigint, input bigint, cached_input bigint,
    cache_write bigint, output bigint, reasoning bigint, images bigint, image_tokens bigint, cost_micros bigint,
    upstream_cost_micros bigint, uncosted_micros bigint, through_seq bigint, next text
  )
  LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path FROM CURRENT
  -- The planner does not know the number of rows. Without the setting it sorts all of them to group them.
  SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off
AS $$
DECLARE
  v_position constant json := nullif(p_position, '');
  v_after constant json := nullif(p_after, '');
  -- No key has an empty id, so the first position is before every row of its quarter.
  v_quarter constant integer := coalesce((v_position ->> 0)::integer, p_starts[1]);
  v_key_id constant text := coalesce(v_position ->> 1, '');
  v_model constant text := coalesce(v_position ->> 2, '');
  v_user_id constant text := coalesce(v_position ->> 3, '');
  v_price_version constant integer := coalesce((v_position ->> 4)::integer, 0);
  v_price_tier constant integer := coalesce((v_position ->> 5)::integer, 0);
  v_price_list_version constant integer := coalesce((v_position ->> 6)::integer, 0);
  v_upstream constant text := coalesce(v_position ->> 7, '');
  v_after_start constant integer := coalesce((v_after ->> 0)::integer, -1);
  v_after_key_id constant text := coalesce(v_after ->> 2, '');
  v_after_model constant text := coalesce(v_after ->> 3, '');
  v_after_user_name constant text := coalesce(v_after ->> 4, '');
  v_after_upstream constant text := coalesce(v_after ->> 5, '');
  v_last record;
BEGIN
  -- The last sum of the statement. The index has all of its columns.
  SELECT u.quarter, u.key_id, u.model, u.user_id, u.price_version, u.price_tier, u.price_list_version, u.upstream,
         json_build_array(u.quarter, u.key_id, u.model, u.user_id, u.price_version, u.price_tier, u.price_list_version, u.upstream)::text AS position INTO v_last
  FROM (
    SELECT i.quarter, i.key_id, i.model, i.user_id, i.price_version, i.price_tier, i.price_list_version, i.upstream FROM usage_quarters i
    WHERE i.lane = p_lane AND i.account_id = p_account_id AND i.quarter < p_end
      AND (i.quarter, i.key_id, i.model, i.user_id, i.price_version, i.price_tier, i.price_list_version, i.upstream)
        > (v_quarter, v_key_id, v_model, v_user_id, v_price_version, v_price_tier, v_price_list_version, v_upstream)
    ORDER BY i.quarter, i.key_id, i.model, i.user_id, i.price_version, i.price_tier, i.price_list_version, i.upstream OFFSET p_rows - 1 LIMIT 1
  ) u;

  RETURN QUERY
  SELECT NULL::integer, '', '', '', '', 0::bigint, 0::bigint, 0::bigint, 0::bigint, 0::bigint, 0::bigint, 0::bigint,
         0::bigint, 0::bigint, 0::bigint, 0::bigint, a.last_seq, v_last.position
  FROM accounts a WHERE a.lane = p_lane AND a.id = p_account_id;

  RETURN QUERY
  WITH groups AS MATERIALIZED (
    SELECT p_starts[width_bucket(u.quarter, p_starts)] AS start, CASE WHEN p_by_key THEN u.key_id ELSE '' END AS key_id,
           CASE WHEN p_by_model THEN u.model ELSE '' END AS model,
           CASE WHEN p_by_user AND u.user_id <> '' THEN coalesce((SELECT n.name FROM end_users n
             WHERE n.lane = p_lane AND n.account_id = p_account_id AND n.user_id = u.user_id), u.user_id) ELSE '' END AS user_name,
           CASE WHEN p_by_upstream THEN u.upstream ELSE '' END AS upstream, sum(u.requests)::bigint AS requests,
           sum(u.input)::bigint AS input, sum(u.cached_input)::bigint AS cached_input,
           sum(u.cache_write)::bigint AS cache_write, sum(u.output)::bigint AS output,
           sum(u.reasoning)::bigint AS reasoning, sum(u.images)::bigint AS images,
           sum(u.image_tokens)::bigint AS image_tokens, sum(u.cost_micros)::bigint AS cost_micros,
           sum(u.upstream_cost_micros)::bigint AS upstream_cost_micros, sum(u.uncosted_micros)::bigint AS uncosted_micros
    FROM usage_quarters u
    WHERE u.lane = p_lane AND u.account_id = p_account_id
      AND (u.quarter, u.key_id, u.model, u.user_id, u.price_version, u.price_tier, u.price_list_version, u.upstream)
        > (v_quarter, v_key_id, v_model, v_user_id, v_price_version, v_price_tier, v_price_list_version, v_upstream)
      AND (u.quarter, u.key_id, u.model, u.user_id, u.price_version, u.price_tier, u.price_list_version, u.upstream)
        <= (coalesce(v_last.quarter, p_end), coalesce(v_last.key_id, ''), coalesce(v_last.model, ''),
            coalesce(v_last.user_id, ''), coalesce(v_last.price_version, 0), coalesce(v_last.price_tier, 0),
            coalesce(v_last.price_list_version, 0), coalesce(v_last.upstream, ''))
    GROUP BY 1, 2, 3, 4, 5
  )
  SELECT g.*, NULL::bigint, NULL::text FROM groups g
  WHERE (g.start, g.key_id, g.model, g.user_name, g.upstream)
    > (v_after_start, v_after_key_id, v_after_model, v_after_user_name, v_after_upstream)
  ORDER BY 1, 2, 3, 4, 5 LIMIT p_limit;
END
$$;
