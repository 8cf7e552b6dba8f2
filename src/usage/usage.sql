-- Usage: the sums of quarters of an hour, reports and exports of them.

-- Adds up the usage of an account by period (p_starts are their first quarters), and by key, model and user if wanted. Reads at
-- most p_rows sums after p_position; the caller adds up what the statements return. The first row has the last ledger entry, and
-- the next position, NULL at the end. Groups follow in order, at most p_limit, after p_after. Positions are JSON.
CREATE OR REPLACE FUNCTION read_usage(
  p_lane smallint, p_account_id text, p_starts integer[], p_end integer, p_by_key boolean, p_by_model boolean,
  p_by_user boolean, p_by_upstream boolean, p_after text, p_position text, p_rows bigint, p_limit bigint
) RETURNS SETOF usage_group
  LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT
  SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off
  SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
DECLARE
  v_from constant usage_place := usage_place_of(p_position, p_starts[1]);
  v_to usage_place;
  v_next text;
BEGIN
  -- The last sum of the statement. The index has all of its columns.
  SELECT u.quarter, u.key_id, u.model, u.user_id, u.price_version, u.price_tier, u.price_list_version, u.upstream
    INTO v_to FROM usage_quarters u
    WHERE u.lane = p_lane AND u.account_id = p_account_id AND u.quarter < p_end
      AND (u.quarter, u.key_id, u.model, u.user_id, u.price_version, u.price_tier, u.price_list_version, u.upstream)
        > (v_from.quarter, v_from.key_id, v_from.model, v_from.user_id, v_from.price_version, v_from.price_tier,
            v_from.price_list_version, v_from.upstream)
    ORDER BY u.quarter, u.key_id, u.model, u.user_id, u.price_version, u.price_tier, u.price_list_version, u.upstream
    OFFSET p_rows - 1 LIMIT 1;
  IF FOUND THEN
    v_next := to_json(v_to);
  ELSE
    v_to := usage_place_of('', p_end);
  END IF;
  RETURN QUERY SELECT (ROW(NULL, '', '', '', '', '', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, a.last_seq, NULL, v_next)::usage_group).*
    FROM accounts a WHERE a.lane = p_lane AND a.id = p_account_id;
  RETURN QUERY SELECT * FROM sum_usage(ARRAY[p_lane], ARRAY[p_account_id], p_starts, v_from, v_to, false, p_by_key, p_by_model,
    p_by_user, p_by_upstream, p_after, p_limit);
END
$$;

-- A place as JSON; before all sums of a quarter if it is empty: no key has an empty id.
CREATE OR REPLACE FUNCTION usage_place_of(p_position text, p_quarter integer) RETURNS usage_place
  LANGUAGE sql STABLE
  RETURN json_populate_record(ROW(p_quarter, '', '', '', 0, 0, 0, '')::usage_place, coalesce(nullif(p_position, ''), '{}')::json);

-- The groups of read_usage and read_all_usage: of these accounts, after one place up to another. The settings of the callers
-- keep the plan on the index: the planner does not know the number of rows, and would sort all of them to group them.
CREATE OR REPLACE FUNCTION sum_usage(
  p_lanes smallint[], p_ids text[], p_starts integer[], p_from usage_place, p_to usage_place, p_by_account boolean,
  p_by_key boolean, p_by_model boolean, p_by_user boolean, p_by_upstream boolean, p_after text, p_limit bigint
) RETURNS SETOF usage_group
  LANGUAGE plpgsql STABLE
AS $$
DECLARE
  v_after constant json := coalesce(nullif(p_after, ''), '[-1,"","","","",""]');
BEGIN
  RETURN QUERY
  WITH groups AS MATERIALIZED (
    SELECT p_starts[width_bucket(u.quarter, p_starts)] AS start,
           CASE WHEN p_by_account THEN a.id ELSE '' END COLLATE "C" AS account_id,
           CASE WHEN p_by_key THEN u.key_id ELSE '' END AS key_id, CASE WHEN p_by_model THEN u.model ELSE '' END AS model,
           CASE WHEN p_by_user AND u.user_id <> '' THEN coalesce((SELECT n.name FROM end_users n
             WHERE n.lane = a.lane AND n.account_id = a.id AND n.user_id = u.user_id), u.user_id) ELSE '' END AS user_name,
           CASE WHEN p_by_upstream THEN u.upstream ELSE '' END AS upstream, sum(u.requests)::bigint, sum(u.input)::bigint,
           sum(u.cached_input)::bigint, sum(u.cache_write)::bigint, sum(u.output)::bigint, sum(u.reasoning)::bigint,
           sum(u.images)::bigint, sum(u.image_tokens)::bigint, sum(u.cost_micros)::bigint, sum(u.upstream_cost_micros)::bigint,
           sum(u.uncosted_micros)::bigint, NULL::bigint, NULL, NULL
    FROM unnest(p_lanes, p_ids) AS a (lane, id)
    JOIN usage_quarters u ON u.lane = a.lane AND u.account_id = a.id
      AND (u.quarter, u.key_id, u.model, u.user_id, u.price_version, u.price_tier, u.price_list_version, u.upstream)
        > (p_from.quarter, p_from.key_id, p_from.model, p_from.user_id, p_from.price_version, p_from.price_tier,
            p_from.price_list_version, p_from.upstream)
      AND (u.quarter, u.key_id, u.model, u.user_id, u.price_version, u.price_tier, u.price_list_version, u.upstream)
        <= (p_to.quarter, p_to.key_id, p_to.model, p_to.user_id, p_to.price_version, p_to.price_tier,
            p_to.price_list_version, p_to.upstream)
    GROUP BY 1, 2, 3, 4, 5, 6
  )
  SELECT * FROM groups g
  WHERE (g.start, g.account_id, g.key_id, g.model, g.user_name, g.upstream)
    > ((v_after ->> 0)::integer, CASE WHEN p_by_account THEN v_after ->> 1 ELSE '' END, v_after ->> 2, v_after ->> 3, v_after ->> 4,
       v_after ->> 5)
  ORDER BY 1, 2, 3, 4, 5, 6 LIMIT p_limit;
END
$$;

-- Adds up the usage of all accounts of the cell as read_usage does: from p_account_id on, as many as have at most p_rows sums
-- together, and at most p_accounts. The first row has the next account, NULL at the end; an account that alone has more than
-- p_rows sums is its large_account_id, and is not included.
CREATE OR REPLACE FUNCTION read_all_usage(
  p_starts integer[], p_end integer, p_by_account boolean, p_by_key boolean, p_by_model boolean, p_by_user boolean,
  p_by_upstream boolean, p_after text, p_account_id text, p_rows bigint, p_accounts integer, p_limit bigint
) RETURNS SETOF usage_group
  LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT
  SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off
  SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
DECLARE
  v_start constant integer := p_starts[1];
  v_ids text[] := '{}';
  v_lanes smallint[] := '{}';
  v_rows_left bigint := p_rows;
  v_accounts_left integer := p_accounts;
  v_next text;
  v_large text;
  v_count bigint;
  r record;
BEGIN
  FOR r IN
    SELECT a.lane, a.id FROM accounts a
    WHERE a.id >= p_account_id AND NOT EXISTS (SELECT 1 FROM lanes l WHERE l.lane = a.lane AND NOT l.is_owned)
    ORDER BY a.id
  LOOP
    v_next := r.id;
    EXIT WHEN v_large IS NOT NULL OR v_accounts_left = 0;
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
  RETURN NEXT ROW(NULL, '', '', '', '', '', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, NULL, v_large, v_next)::usage_group;
  RETURN QUERY SELECT * FROM sum_usage(v_lanes, v_ids, p_starts, usage_place_of('', v_start), usage_place_of('', p_end),
    p_by_account, p_by_key, p_by_model, p_by_user, p_by_upstream, p_after, p_limit);
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

-- The sums of the usage of a lane, or of one account of it, from quarter p_from until before p_end: at most p_limit, after
-- p_position (the last sum as JSON; empty for the start).
CREATE OR REPLACE FUNCTION export_usage(
  p_lane smallint, p_account_id text, p_from integer, p_end integer, p_position text, p_limit integer
) RETURNS SETOF priced_usage
  LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT
  SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
DECLARE
  v_last_id constant text := nullif(p_position, '')::json ->> 'account_id';
  v_first_id constant text := coalesce(v_last_id, p_account_id);
  v_left integer := p_limit;
  v_count integer;
  v_id text;
  v_after usage_place;
BEGIN
  PERFORM require_lane(p_lane);
  FOR v_id IN
    SELECT a.id FROM accounts a
    WHERE a.lane = p_lane AND a.id >= v_first_id AND (p_account_id = '' OR a.id = p_account_id) ORDER BY a.id
  LOOP
    v_after := usage_place_of(CASE v_id WHEN v_last_id THEN p_position ELSE '' END, p_from);
    RETURN QUERY SELECT u.* FROM priced_usage u
      WHERE u.lane = p_lane AND u.account_id = v_id AND u.quarter < p_end
        AND (u.quarter, u.key_id, u.model, u.user_id, u.price_version, u.price_tier, u.price_list_version, u.upstream)
          > (v_after.quarter, v_after.key_id, v_after.model, v_after.user_id, v_after.price_version, v_after.price_tier,
            v_after.price_list_version, v_after.upstream)
      ORDER BY u.quarter, u.key_id, u.model, u.user_id, u.price_version, u.price_tier, u.price_list_version, u.upstream
      LIMIT v_left;
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
  LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT
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

-- Adds generations to the sums of their quarter of an hour. p_users are the end users that they name, NULL without any. The
-- caller has just written the rows and holds the locks of their lanes.
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
