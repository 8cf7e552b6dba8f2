-- Usage: the sums of quarters of an hour, reports and exports of them.

-- Adds up the usage of an account by period, and by key, model and user if wanted. p_starts are the first quarters of
-- the periods, in order; the last period ends before p_end.
--
-- A statement reads at most p_rows sums, in the order of the primary key, after p_position; the caller adds up what the
-- statements return. The first row of the result has no start: it has the number of the last ledger entry, and the next
-- position, which is NULL at the end. The groups follow in order, at most p_limit, only those after p_after. Positions
-- are JSON.
-- null: start, through_seq, next
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

-- Adds up the usage of all accounts of the cell by period, and by account, key, model and user if wanted: in the order
-- of their ids, the accounts from p_account_id on, as many as have at most p_rows sums together, and at most
-- p_accounts. The caller adds up what the statements return.
--
-- The first row of the result has no start. Its account_id is that of the next account, or NULL at the end; an account that
-- alone has more than p_rows sums is its large_account_id, and is not included. The groups follow in order, at most p_limit,
-- only those after p_after (JSON).
-- null: start, account_id, large_account_id
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

-- The time by the clock of the database, in seconds since 1970.
CREATE OR REPLACE FUNCTION seconds_of_clock() RETURNS TABLE (seconds bigint)
  LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT
AS $$
BEGIN
  seconds := floor(extract(epoch FROM clock_timestamp()));
  RETURN NEXT;
END
$$;

-- The sums of the usage of a lane, or of one account of it, from quarter p_from until before p_end, with the names of
-- accounts and the prices: at most p_limit, in the order of the primary key, after p_position (JSON; empty for the start). List prices
-- are those of the model at that time: of the highest tier that each call of a sum has certainly reached, because the tiers of an
-- account's own prices may differ.
-- null: input_price, cached_input_price, cache_write_price, cache_write_1h_price, output_price, reasoning_price, image_price
-- null: request_price, input_list_price, cached_input_list_price, cache_write_list_price, cache_write_1h_list_price
-- null: output_list_price, reasoning_list_price, image_list_price, request_list_price, discount
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

-- The credits and adjustments of a lane, or of one account of it, from one time until before another, with the names of
-- accounts: at most p_limit, after entry p_seq of p_after_id.
CREATE OR REPLACE FUNCTION export_movements(
  p_lane smallint, p_account_id text, p_from timestamptz, p_to timestamptz, p_after_id text, p_seq bigint,
  p_limit integer
) RETURNS TABLE (
    account_id text, account_name text, seq bigint, id text, kind entry_kind, amount_micros bigint, reason text,
    created_at timestamptz, is_promotional boolean
  )
  LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path FROM CURRENT
  SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off
AS $$
BEGIN
  PERFORM require_lane(p_lane);
  RETURN QUERY
  SELECT l.account_id, a.name, l.seq, l.id, l.kind, l.amount_micros, l.reason, l.created_at,
         coalesce((SELECT g.is_promotional FROM grants g WHERE g.lane = l.lane AND g.account_id = l.account_id AND g.seq = l.seq), false)
  FROM ledger l JOIN accounts a ON a.lane = l.lane AND a.id = l.account_id
  WHERE l.lane = p_lane AND l.kind <> 'generation' AND (l.account_id, l.seq) > (p_after_id, p_seq)
    AND l.account_id >= p_account_id AND (p_account_id = '' OR l.account_id = p_account_id)
    AND l.created_at >= p_from AND l.created_at < p_to
  ORDER BY l.account_id, l.seq LIMIT p_limit;
END
$$;

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

-- Gives new end users of a day a name of their own in the usage, in order of arrival, while their account has fewer than
-- 1,000 of them on that day. The rows of an account have one time. The caller holds the locks of the lanes.
CREATE OR REPLACE FUNCTION name_users(p_rows ledger[]) RETURNS void
  LANGUAGE plpgsql
AS $$
BEGIN
  -- Users of earlier days are no longer needed.
  DELETE FROM usage_users n USING (
    SELECT DISTINCT c.lane, c.account_id, d.day FROM unnest(p_rows) r
    CROSS JOIN LATERAL (SELECT floor(extract(epoch FROM r.created_at) / 86400)::integer AS day) d
    JOIN usage_user_counts c ON c.lane = r.lane AND c.account_id = r.account_id
    WHERE r.user_id <> '' AND c.day < d.day
  ) old WHERE n.lane = old.lane AND n.account_id = old.account_id AND n.day < old.day;
  WITH named AS MATERIALIZED (
    INSERT INTO usage_users (lane, account_id, day, user_id)
    SELECT t.lane, t.account_id, t.day, t.user_id FROM (
      SELECT f.lane, f.account_id, f.day, f.user_id,
             row_number() OVER (PARTITION BY f.lane, f.account_id ORDER BY f.seq) + coalesce(c.users, 0) AS number
      FROM (
        SELECT r.lane, r.account_id, floor(extract(epoch FROM r.created_at) / 86400)::integer AS day, r.user_id,
               min(r.seq) AS seq
        FROM unnest(p_rows) r WHERE r.kind = 'generation' AND r.user_id <> ''
        GROUP BY r.lane, r.account_id, 3, r.user_id
      ) f
      LEFT JOIN usage_user_counts c ON c.lane = f.lane AND c.account_id = f.account_id AND c.day = f.day
      WHERE NOT EXISTS (SELECT 1 FROM usage_users n
        WHERE n.lane = f.lane AND n.account_id = f.account_id AND n.day = f.day AND n.user_id = f.user_id)
    ) t WHERE t.number <= 1000
    RETURNING lane, account_id, day
  )
  INSERT INTO usage_user_counts AS c (lane, account_id, day, users)
  SELECT n.lane, n.account_id, n.day, count(*) FROM named n GROUP BY n.lane, n.account_id, n.day
  ON CONFLICT ON CONSTRAINT usage_user_counts_pkey DO UPDATE SET
    users = CASE c.day WHEN excluded.day THEN c.users ELSE 0 END + excluded.users, day = excluded.day;
END
$$;
