-- Adds up the usage of all accounts of the cell by period, and by account, key, model and user if wanted: in the order
-- of their ids, the accounts from p_account_id on, as many as have at most p_rows sums together, and at most
-- p_accounts. The caller adds up what the statements return.
--
-- The first row of the result has no start. Its account_id is that of the next account, or NULL at the end; an account that
-- alone has more than p_rows sums is its large_account_id, and is not included. The groups follow in order, at most p_limit,
-- only those after p_after (JSON).
CREATE OR REPLACE FUNCTION read_all_usage(
  p_starts integer[], p_end integer, p_by_account boolean, p_by_key boolean, p_by_model boolean, p_by_user boolean,
  p_by_upstream boolean, p_after text, p_account_id text, p_rows bigint, p_accounts integer, p_limit bigint
) RETURNS TABLE (
    start integer, account_id text, key_id text, model text, user_name text, upstream text, requests bigint, input bigint,
    cached_input bigint, cache_write bigint, output bigint, reasoning bigint, images bigint, image_tokens bigint,
    cost_micros bigint, upstream_cost_micros bigint, uncosted_micros bigint, large_account_id text
  )
  LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path FROM CURRENT
  SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off
  SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
DECLARE
  v_after constant json := nullif(p_after, '');
  v_after_start constant integer := coalesce((v_after ->> 0)::integer, -1);
  v_after_account_id constant text := coalesce(v_after ->> 1, '');
  v_after_key_id constant text := coalesce(v_after ->> 2, '');
  v_after_model constant text := coalesce(v_after ->> 3, '');
  v_after_user_name constant text := coalesce(v_after ->> 4, '');
  v_after_upstream constant text := coalesce(v_after ->> 5, '');
  v_start constant integer := p_starts[1];
  v_ids text[] := '{}';
  v_lanes smallint[] := '{}';
  v_rows_left bigint := p_rows;
  v_accounts_left integer := p_accounts;
  v_next text;
  v_large text := '';
  v_count bigint;
  r record;
BEGIN
  FOR r IN
    SELECT a.lane, a.id FROM accounts a
    WHERE a.id >= p_account_id AND NOT EXISTS (SELECT 1 FROM lanes l WHERE l.lane = a.lane AND NOT l.is_owned)
    ORDER BY a.id
  LOOP
    v_next := r.id;
    EXIT WHEN v_large <> '' OR v_accounts_left = 0;
    SELECT count(*) INTO v_count FROM (
      SELECT 1 FROM usage_quarters u
      WHERE u.lane = r.lane AND u.account_id = r.id AND u.quarter >= v_start AND u.quarter < p_end LIMIT v_rows_left + 1
    ) c;
    IF v_count > p_rows THEN
      v_large := r.id;
    ELSIF v_count > v_rows_left THEN
      EXIT;
    ELSIF v_count > 0 THEN
      v_ids := v_ids || r.id;
      v_lanes := v_lanes || r.lane;
      v_rows_left := v_rows_left - v_count;
    END IF;
    v_accounts_left := v_accounts_left - 1;
    v_next := NULL;
  END LOOP;

  RETURN QUERY
  SELECT NULL::integer, v_next, '', '', '', '', 0::bigint, 0::bigint, 0::bigint, 0::bigint, 0::bigint, 0::bigint, 0::bigint,
         0::bigint, 0::bigint, 0::bigint, 0::bigint, v_large;

  RETURN QUERY
  WITH groups AS MATERIALIZED (
    SELECT p_starts[width_bucket(u.quarter, p_starts)] AS start,
           CASE WHEN p_by_account THEN a.id ELSE '' END COLLATE "C" AS account_id,
           CASE WHEN p_by_key THEN u.key_id ELSE '' END AS key_id,
           CASE WHEN p_by_model THEN u.model ELSE '' END AS model,
           CASE WHEN p_by_user AND u.user_id <> '' THEN coalesce((SELECT n.name FROM end_users n
             WHERE n.lane = a.lane AND n.account_id = a.id AND n.user_id = u.user_id), u.user_id) ELSE '' END AS user_name,
           CASE WHEN p_by_upstream THEN u.upstream ELSE '' END AS upstream, sum(u.requests)::bigint AS requests,
           sum(u.input)::bigint AS input, sum(u.cached_input)::bigint AS cached_input,
           sum(u.cache_write)::bigint AS cache_write, sum(u.output)::bigint AS output,
           sum(u.reasoning)::bigint AS reasoning, sum(u.images)::bigint AS images,
           sum(u.image_tokens)::bigint AS image_tokens, sum(u.cost_micros)::bigint AS cost_micros,
           sum(u.upstream_cost_micros)::bigint AS upstream_cost_micros, sum(u.uncosted_micros)::bigint AS uncosted_micros
    FROM unnest(v_lanes, v_ids) AS a (lane, id)
    JOIN usage_quarters u
      ON u.lane = a.lane AND u.account_id = a.id AND u.quarter >= v_start AND u.quarter < p_end
    GROUP BY 1, 2, 3, 4, 5, 6
  )
  SELECT g.start, g.account_id::text, g.key_id::text, g.model::text, g.user_name::text, g.upstream::text, g.requests, g.input,
         g.cached_input, g.cache_write, g.output, g.reasoning, g.images, g.image_tokens, g.cost_micros,
         g.upstream_cost_micros, g.uncosted_micros, NULL
  FROM groups g
  WHERE (g.start, g.account_id, g.key_id, g.model, g.user_name, g.upstream)
    > (v_after_start, v_after_account_id, v_after_key_id, v_after_model, v_after_user_name, v_after_upstream)
  ORDER BY 1, 2, 3, 4, 5, 6 LIMIT p_limit;
END
$$;
