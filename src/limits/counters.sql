-- The counters of limits: which of them a call uses, whether they have room for it, and what it adds to them.

-- Whether any limit can apply to a call: of its account, of its key or an ancestor, or of a plan. p_limited_plans are the plans
-- that have limits, NULL for none. Reads only columns of rows that a batch reads anyway.
CREATE OR REPLACE FUNCTION limits_apply(
  p_account_is_limited boolean, p_key_is_limited boolean, p_plan text, p_ancestors text[], p_limited_plans text[]
) RETURNS boolean
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN p_account_is_limited OR p_key_is_limited
    OR (p_limited_plans IS NOT NULL AND (p_plan = ANY (p_limited_plans) OR cardinality(p_ancestors) > 0));

-- The plans that have limits. Every batch calls it.
CREATE OR REPLACE FUNCTION limited_plans() RETURNS plans_with_limits
  LANGUAGE plpgsql STABLE
AS $$
DECLARE
  v_plans plans_with_limits;
BEGIN
  v_plans.names := (SELECT array_agg(l.owner_id) FROM limits l WHERE l.lane = 1024);
  IF v_plans.names IS NOT NULL THEN
    v_plans.version := (SELECT s.version FROM shared_data s);
  END IF;
  RETURN v_plans;
END
$$;

-- The keys of the counters of a call, of those that exist and those that do not. Parameters are as in counters_of_call.
CREATE OR REPLACE FUNCTION names_of_counters(
  p_lane smallint, p_account_id text, p_key_ids text[], p_account_is_limited boolean, p_key_is_limited boolean,
  p_limited_plans text[], p_user_id text
) RETURNS SETOF counter_name
  LANGUAGE plpgsql STABLE ROWS 2
AS $$
BEGIN
  RETURN QUERY
  SELECT s.subject_id, s.plan, u.user_id
  FROM limit_subjects(p_lane, p_account_id, p_key_ids, p_account_is_limited, p_key_is_limited, p_limited_plans) s
  CROSS JOIN LATERAL (
    SELECT '' AS user_id
    UNION ALL
    -- An account has at most 100,000 rows of users: the other users share one.
    SELECT CASE WHEN EXISTS (SELECT 1 FROM limit_counters c WHERE c.lane = p_lane AND c.account_id = p_account_id
          AND c.subject_id = s.subject_id AND c.plan = s.plan AND c.user_id = p_user_id)
        OR NOT EXISTS (SELECT 1 FROM limit_users u WHERE u.lane = p_lane AND u.account_id = p_account_id AND u.counters >= 100000)
      THEN p_user_id ELSE '(other)' END
    WHERE p_user_id <> '' AND EXISTS (SELECT 1 FROM limits l WHERE l.per_user
      AND l.lane = CASE s.plan WHEN '' THEN p_lane ELSE 1024 END
      AND l.owner_id = CASE s.plan WHEN '' THEN s.subject_id ELSE s.plan END)
  ) u;
END
$$;

-- The counters of a call of the last of these keys at a time. p_version is that of the account's limits. The planner inlines it:
-- a call for each item of a batch takes much longer.
CREATE OR REPLACE FUNCTION counters_of_call(
  p_lane smallint, p_account_id text, p_key_ids text[], p_account_is_limited boolean, p_key_is_limited boolean,
  p_limited_plans text[], p_plans_version bigint, p_version bigint, p_user_id text, p_at timestamptz
) RETURNS SETOF call_counters
  LANGUAGE sql STABLE ROWS 1
AS $$
  SELECT array_agg(c.place), array_agg(c.counter),
         bool_and(coalesce(c.version = CASE s.plan WHEN '' THEN p_version ELSE p_plans_version END AND c.valid_until > p_at, false))
           -- With limits per user, there is a row for the user.
           AND count(*) FILTER (WHERE p_user_id <> '' AND c.user_id = '' AND true = ANY ((c.counter).per_users))
             <= count(*) FILTER (WHERE c.user_id <> '')
  FROM limit_subjects(p_lane, p_account_id, p_key_ids, p_account_is_limited, p_key_is_limited, p_limited_plans) s
  -- The limit keeps a look-up by key.
  LEFT JOIN LATERAL (SELECT i.ctid AS place, i.user_id, i.version, i.valid_until, i.counter FROM limit_counters i
    WHERE i.lane = p_lane AND i.account_id = p_account_id AND i.subject_id = s.subject_id AND i.plan = s.plan
      AND i.user_id = ANY (ARRAY['', p_user_id]) LIMIT 2) c ON true
$$;

-- Whose limits count a call of the last of these keys: the account, the key and its ancestors, and their plans.
CREATE OR REPLACE FUNCTION limit_subjects(
  p_lane smallint, p_account_id text, p_key_ids text[], p_account_is_limited boolean, p_key_is_limited boolean,
  p_limited_plans text[]
) RETURNS TABLE (subject_id text, plan text)
  LANGUAGE sql STABLE ROWS 2
AS $$
  SELECT p_account_id, '' WHERE p_account_is_limited
  UNION ALL
  SELECT unnest(p_key_ids), '' WHERE p_key_is_limited
  UNION ALL
  SELECT k.id, k.plan FROM keys k
  WHERE p_limited_plans IS NOT NULL AND k.lane = p_lane AND k.id = ANY (p_key_ids) AND k.plan = ANY (p_limited_plans)
$$;

-- Checks a hold against all limits that apply: spent + held + needed <= amount. p_changed are the counters that earlier holds of
-- the batch have changed. p_is_short: the balance is too low; then the details also have what is left of the limits. Reads no
-- table.
CREATE OR REPLACE FUNCTION check_limits(
  p_places tid[], p_counters limit_counter[], p_changed_places tid[], p_changed limit_counter[], p_model text, p_user text,
  p_amount bigint, p_tokens bigint, p_is_short boolean, p_at timestamptz
) RETURNS limit_check
  LANGUAGE plpgsql STABLE
AS $$
DECLARE
  v_places tid[];
  v_counters limit_counter[];
  v_held_counters held_counter[];
  v_is_refused boolean := false;
  v_minutes text;
  v_details text;
  -- Of the current counter.
  v_held bigint[];
  v_needs bigint[];
  v_needed bigint;
  v_applies boolean;
  c limit_counter;
BEGIN
  FOR n IN 1..cardinality(p_counters) LOOP
    c := p_counters[n];
    IF p_places[n] = ANY (p_changed_places) THEN
      c := p_changed[array_position(p_changed_places, p_places[n])];
    END IF;
    IF p_at >= ANY (c.window_ends) THEN
      c := restart_windows(c, p_at);
    END IF;
    v_held := c.held;
    v_needs := NULL;
    v_applies := false;
    FOR i IN 1..cardinality(v_held) LOOP
      -- An alert only counts charges.
      IF c.metrics[i] = 'cost_alert' OR c.models[i] NOT IN ('', p_model) OR (c.per_users[i] AND c.user_id = '' AND p_user <> '') THEN
        v_needs := array_append(v_needs, NULL::bigint);
        CONTINUE;
      END IF;
      v_applies := true;
      v_needed := CASE c.metrics[i] WHEN 'cost' THEN p_amount WHEN 'tokens' THEN p_tokens ELSE 1 END;
      v_needs := array_append(v_needs, v_needed);
      v_held[i] := v_held[i] + v_needed;
      IF c.spent[i] + v_held[i] > c.amounts[i] THEN
        v_is_refused := true;
      END IF;
      IF c.periods[i] = 'minute' THEN
        -- json_build_object takes several times as long.
        v_minutes := concat(v_minutes || ',', '{"metric":"', c.metrics[i], '","amount":"', c.amounts[i], '","remaining":"',
          greatest(0, c.amounts[i] - c.spent[i] - v_held[i]), '","seconds_left":', 60 - floor(extract(second FROM p_at)), '}');
      END IF;
    END LOOP;
    IF v_applies THEN
      c.held := v_held;
      v_places := array_append(v_places, p_places[n]);
      v_counters := array_append(v_counters, c);
      v_held_counters := array_append(v_held_counters, ROW(c.subject_id, c.plan, c.user_id, c.limit_ids, v_needs)::held_counter);
    END IF;
  END LOOP;
  IF v_is_refused OR p_is_short THEN
    v_details := explain_limits(v_counters, v_held_counters, p_at);
  ELSIF v_minutes IS NOT NULL THEN
    v_details := concat('{"minutes":[', v_minutes, ']}');
  END IF;
  RETURN ROW(v_is_refused, v_places, v_counters, v_held_counters, v_details)::limit_check;
END
$$;

-- Returns, as JSON, the remaining amounts of the limits without the hold, and the limit that refuses it: the one with the longest
-- wait. p_counters are the counters with the hold, and p_held what it holds of them.
CREATE OR REPLACE FUNCTION explain_limits(p_counters limit_counter[], p_held held_counter[], p_at timestamptz) RETURNS text
  LANGUAGE plpgsql STABLE
AS $$
DECLARE
  v_text text;
BEGIN
  WITH applied AS MATERIALIZED (
    SELECT l.*, l.held - l.needed AS held_before, l.amount - l.spent - l.held + l.needed AS room,
           nullif(window_end(l.period, p_at), 'infinity') AS resets_at, CASE l.plan WHEN '' THEN l.subject_id ELSE l.plan END AS owner_id
    FROM generate_series(1, cardinality(p_counters)) n
    CROSS JOIN LATERAL (
      SELECT (p_counters[n]).subject_id, (p_counters[n]).plan, x.* FROM unnest((p_counters[n]).limit_ids, (p_counters[n]).metrics,
        (p_counters[n]).periods, (p_counters[n]).models, (p_counters[n]).per_users, (p_counters[n]).amounts,
        (p_counters[n]).spent, (p_counters[n]).held, (p_held[n]).amounts)
        AS x (id, metric, period, model, per_user, amount, spent, held, needed)
    ) l
    WHERE l.needed IS NOT NULL
  ), refusing AS (
    SELECT l.* FROM applied l WHERE l.needed > l.room
    ORDER BY CASE WHEN l.needed > l.amount THEN interval '1000 years'
      -- Running calls hold the missing amount.
      WHEN l.spent + l.needed <= l.amount THEN interval '0'
      ELSE coalesce(l.resets_at - p_at, interval '1000 years') END DESC
    LIMIT 1
  )
  SELECT json_build_object(
    'refusal', (SELECT json_build_object('id', r.id, 'owner_id', r.owner_id, 'metric', r.metric, 'window', r.period,
        'amount', r.amount::text, 'model', r.model, 'per', CASE WHEN r.per_user THEN 'user' ELSE '' END, 'spent', r.spent::text,
        'held', r.held_before::text, 'needed', r.needed::text, 'resets_at', floor(extract(epoch FROM r.resets_at)),
        'seconds_left', ceil(extract(epoch FROM r.resets_at - p_at))) FROM refusing r),
    'cost_room', (SELECT min(l.room)::text FROM applied l WHERE l.metric = 'cost'),
    'token_room', (SELECT min(l.room)::text FROM applied l WHERE l.metric = 'tokens'))::text INTO v_text;
  RETURN v_text;
END
$$;

-- The counter in the windows that a time is in.
CREATE OR REPLACE FUNCTION restart_windows(p_counter limit_counter, p_at timestamptz) RETURNS limit_counter
  LANGUAGE plpgsql STABLE
AS $$
DECLARE
  c limit_counter := p_counter;
BEGIN
  FOR i IN 1..cardinality(c.window_ends) LOOP
    IF c.window_ends[i] <= p_at THEN
      c.window_ends[i] := window_end(c.periods[i], p_at);
      c.spent[i] := 0;
      c.counted_since[i] := '-infinity';
    END IF;
  END LOOP;
  RETURN c;
END
$$;

-- Writes counters that do not exist or have old definitions, and returns all of them. Others keep their place. The caller holds
-- the lock of the lane.
CREATE OR REPLACE FUNCTION align_counters(
  p_lane smallint, p_account_id text, p_names counter_name[], p_version bigint, p_plans_version bigint, p_at timestamptz
) RETURNS call_counters
  LANGUAGE plpgsql
AS $$
DECLARE
  v_users integer;
  v_counters call_counters;
BEGIN
  WITH old AS MATERIALIZED (
    SELECT n.subject_id, n.plan, n.user_id, v.version, c.version IS NULL AS is_new
    FROM unnest(p_names) AS n (subject_id, plan, user_id)
    CROSS JOIN LATERAL (SELECT CASE n.plan WHEN '' THEN p_version ELSE p_plans_version END AS version) v
    -- The limit keeps a look-up by key.
    LEFT JOIN LATERAL (SELECT i.version, i.valid_until FROM limit_counters i
      WHERE i.lane = p_lane AND i.account_id = p_account_id AND i.subject_id = n.subject_id AND i.plan = n.plan
        AND i.user_id = n.user_id LIMIT 1) c ON true
    WHERE c.version IS DISTINCT FROM v.version OR c.valid_until <= p_at
  ), written AS (
    INSERT INTO limit_counters AS c (lane, account_id, subject_id, plan, user_id, version, valid_until, expires_at, counter)
    SELECT p_lane, p_account_id, o.subject_id, o.plan, o.user_id, o.version, a.valid_until, last_window_end(a.counter), a.counter
    FROM old o
    CROSS JOIN LATERAL aligned_counters(p_lane, p_account_id,
      ARRAY[ROW(o.subject_id, o.plan, o.user_id)::counter_name], p_at) a
    ON CONFLICT ON CONSTRAINT limit_counters_pkey DO UPDATE SET
      version = excluded.version, valid_until = excluded.valid_until, expires_at = excluded.expires_at,
      counter = excluded.counter
  )
  SELECT count(*) INTO v_users FROM old o WHERE o.is_new AND o.user_id <> '';
  IF v_users > 0 THEN
    PERFORM count_users(p_lane, p_account_id, v_users);
  END IF;
  SELECT array_agg(a.place), array_agg(a.counter), true INTO v_counters
    FROM aligned_counters(p_lane, p_account_id, p_names, p_at) a;
  RETURN v_counters;
END
$$;

-- What counters must contain at a time: the definitions as they are now, with what the rows have counted. New limits start at
-- zero.
CREATE OR REPLACE FUNCTION aligned_counters(p_lane smallint, p_account_id text, p_names counter_name[], p_at timestamptz)
  RETURNS TABLE (place tid, counter limit_counter, valid_until timestamptz)
  LANGUAGE plpgsql STABLE ROWS 2
AS $$
BEGIN
  RETURN QUERY
  SELECT o.place, ROW(n.subject_id, n.plan, n.user_id, d.limit_ids, d.metrics, d.periods, d.models, d.per_users, d.amounts,
           d.window_ends, d.spent, d.held, d.counted_since)::limit_counter, d.valid_until
  FROM unnest(p_names) AS n (subject_id, plan, user_id)
  LEFT JOIN LATERAL (SELECT i.ctid AS place, i.counter FROM limit_counters i
    WHERE i.lane = p_lane AND i.account_id = p_account_id AND i.subject_id = n.subject_id AND i.plan = n.plan
      AND i.user_id = n.user_id LIMIT 1) o ON true
  CROSS JOIN LATERAL (
    SELECT coalesce(min(l.temporary_until) FILTER (WHERE l.temporary_until > p_at), 'infinity') AS valid_until,
           coalesce(array_agg(l.id ORDER BY l.id), '{}') AS limit_ids,
           coalesce(array_agg(l.metric ORDER BY l.id), '{}') AS metrics,
           coalesce(array_agg(l.period ORDER BY l.id), '{}') AS periods,
           coalesce(array_agg(l.model ORDER BY l.id), '{}') AS models,
           coalesce(array_agg(l.per_user ORDER BY l.id), '{}') AS per_users,
           coalesce(array_agg(CASE WHEN l.temporary_until > p_at THEN l.temporary_amount ELSE l.amount END ORDER BY l.id), '{}')
             AS amounts,
           coalesce(array_agg(coalesce(c.window_end, window_end(l.period, p_at)) ORDER BY l.id), '{}') AS window_ends,
           coalesce(array_agg(coalesce(c.spent, 0) ORDER BY l.id), '{}') AS spent,
           coalesce(array_agg(coalesce(c.held, 0) ORDER BY l.id), '{}') AS held,
           coalesce(array_agg(coalesce(c.counted_since, p_at) ORDER BY l.id), '{}') AS counted_since
    FROM limits l
    LEFT JOIN unnest((o.counter).limit_ids, (o.counter).window_ends, (o.counter).spent, (o.counter).held,
        (o.counter).counted_since)
      AS c (limit_id, window_end, spent, held, counted_since) ON c.limit_id = l.id
    WHERE l.lane = CASE n.plan WHEN '' THEN p_lane ELSE 1024 END
      AND l.owner_id = CASE n.plan WHEN '' THEN n.subject_id ELSE n.plan END AND (l.per_user OR n.user_id = '')
  ) d;
END
$$;

-- Adds to the number of counters of end users that an account has.
CREATE OR REPLACE FUNCTION count_users(p_lane smallint, p_account_id text, p_added integer) RETURNS void
  LANGUAGE plpgsql
AS $$
BEGIN
  INSERT INTO limit_users AS u (lane, account_id, counters) VALUES (p_lane, p_account_id, p_added)
    ON CONFLICT ON CONSTRAINT limit_users_pkey DO UPDATE SET counters = u.counters + excluded.counters;
END
$$;

-- Releases what an ended hold held of counters, and adds a charge to all limits that apply now, also those set while the call
-- ran. p_counters are those of the call, NULL without a charge; p_changed those that earlier items of the batch have changed.
-- Writes the events of crossed thresholds. Returns the changed counters. The caller holds the lane.
CREATE OR REPLACE FUNCTION settle_limits(
  p_lane smallint, p_account_id text, p_places tid[], p_counters limit_counter[], p_changed_places tid[], p_changed limit_counter[],
  p_held held_counter[], p_model text, p_user text, p_cost bigint, p_tokens bigint, p_at timestamptz
) RETURNS call_counters
  LANGUAGE plpgsql
AS $$
DECLARE
  v_places tid[] := p_places;
  v_counters limit_counter[] := p_counters;
  v_charged constant integer := coalesce(cardinality(p_counters), 0);
  v_released constant integer := coalesce(cardinality(p_held), 0);
  v_settled_places tid[];
  v_settled limit_counter[];
  v_is_known boolean;
  -- What the hold held of the current counter.
  v_ids text[];
  v_amounts bigint[];
  v_held bigint[];
  v_spent bigint[];
  v_is_changed boolean;
  h held_counter;
  c limit_counter;
  r record;
BEGIN
  FOR m IN 1..v_released LOOP
    h := p_held[m];
    v_is_known := false;
    FOR n IN 1..v_charged LOOP
      c := p_counters[n];
      v_is_known := v_is_known OR (c.subject_id = h.subject_id AND c.plan = h.plan AND c.user_id = h.user_id);
    END LOOP;
    -- There is no charge, the plan of the key has changed, or a limit was removed.
    IF NOT v_is_known THEN
      SELECT i.ctid, i.counter INTO r FROM limit_counters i
        WHERE i.lane = p_lane AND i.account_id = p_account_id AND i.subject_id = h.subject_id AND i.plan = h.plan
          AND i.user_id = h.user_id;
      IF FOUND THEN
        v_places := array_append(v_places, r.ctid);
        v_counters := array_append(v_counters, r.counter);
      END IF;
    END IF;
  END LOOP;
  FOR n IN 1..coalesce(cardinality(v_counters), 0) LOOP
    c := v_counters[n];
    IF v_places[n] = ANY (p_changed_places) THEN
      c := p_changed[array_position(p_changed_places, v_places[n])];
    END IF;
    IF n <= v_charged AND p_at >= ANY (c.window_ends) THEN
      c := restart_windows(c, p_at);
    END IF;
    v_held := c.held;
    v_spent := c.spent;
    v_ids := NULL;
    FOR m IN 1..v_released LOOP
      h := p_held[m];
      IF c.subject_id = h.subject_id AND c.plan = h.plan AND c.user_id = h.user_id THEN
        v_ids := h.limit_ids;
        v_amounts := h.amounts;
      END IF;
    END LOOP;
    v_is_changed := v_ids IS NOT NULL;
    FOR i IN 1..cardinality(v_held) LOOP
      IF v_ids IS NOT NULL THEN
        v_held[i] := v_held[i] - coalesce(v_amounts[
          CASE WHEN v_ids[i] = c.limit_ids[i] THEN i ELSE array_position(v_ids, c.limit_ids[i]) END], 0);
      END IF;
      IF n > v_charged OR c.models[i] NOT IN ('', p_model) OR (c.per_users[i] AND c.user_id = '' AND p_user <> '') THEN
        CONTINUE;
      END IF;
      v_is_changed := true;
      v_spent[i] := v_spent[i] + CASE c.metrics[i] WHEN 'cost' THEN p_cost WHEN 'cost_alert' THEN p_cost
        WHEN 'tokens' THEN p_tokens WHEN 'generations' THEN 1 ELSE 0 END;
      IF c.spent[i] < c.amounts[i] AND v_spent[i] * 5 >= c.amounts[i] * 4 THEN
        PERFORM write_limit_events(p_lane, p_account_id, p_user, c, i, v_spent[i]);
      END IF;
    END LOOP;
    IF v_is_changed THEN
      c.held := v_held;
      c.spent := v_spent;
      v_settled_places := array_append(v_settled_places, v_places[n]);
      v_settled := array_append(v_settled, c);
    END IF;
  END LOOP;
  RETURN ROW(v_settled_places, v_settled, true)::call_counters;
END
$$;

-- Writes the events limit.threshold of the limit p_i of a counter, if a charge raises the spent
-- amount to p_spent and crosses 80 or 100 % of the limit's amount. p_user is the end user of the call.
CREATE OR REPLACE FUNCTION write_limit_events(
  p_lane smallint, p_account_id text, p_user text, p_counter limit_counter, p_i integer, p_spent bigint
) RETURNS void
  LANGUAGE plpgsql
AS $$
DECLARE
  v_amount constant bigint := p_counter.amounts[p_i];
BEGIN
  IF p_counter.metrics[p_i] IN ('cost', 'cost_alert', 'tokens') AND p_counter.periods[p_i] IN ('day', 'week', 'month', 'total') THEN
    PERFORM write_event(p_lane, p_account_id, 'limit.threshold', jsonb_build_object('percent', t.percent,
      'user', CASE WHEN p_counter.user_id IN ('', '(other)') THEN p_counter.user_id ELSE p_user END, 'limit', jsonb_build_object('id', p_counter.limit_ids[p_i],
        'metric', p_counter.metrics[p_i], 'window', p_counter.periods[p_i], 'amount', v_amount,
        'model', p_counter.models[p_i], 'per', CASE WHEN p_counter.per_users[p_i] THEN 'user' ELSE '' END,
        'owner', CASE WHEN p_counter.plan <> '' THEN 'plan' WHEN p_counter.subject_id = p_account_id THEN 'account' ELSE 'key' END,
        'owner_id', coalesce(nullif(p_counter.plan, ''), p_counter.subject_id), 'spent', p_spent,
        'resets_at', nullif(p_counter.window_ends[p_i], 'infinity'))))
      FROM unnest(ARRAY[80, 100]) WITH ORDINALITY AS t (percent, n)
      WHERE p_counter.spent[p_i] * 100 < v_amount * t.percent AND p_spent * 100 >= v_amount * t.percent ORDER BY t.n;
  END IF;
END
$$;

-- Writes changed counters to their places. The caller holds the locks of the lanes, and has read the places since.
CREATE OR REPLACE FUNCTION write_counters(p_places tid[], p_counters limit_counter[]) RETURNS void
  LANGUAGE plpgsql
AS $$
DECLARE
  v_written integer;
BEGIN
  UPDATE limit_counters c SET
    counter = p_counters[t.n],
    expires_at = CASE WHEN c.user_id = '' THEN c.expires_at ELSE last_window_end(p_counters[t.n]) END
  FROM unnest(p_places) WITH ORDINALITY t (place, n) WHERE c.ctid = t.place;
  GET DIAGNOSTICS v_written = ROW_COUNT;
  IF v_written <> cardinality(p_places) THEN
    RAISE EXCEPTION 'only % of % counters of limits were found at their places', v_written, cardinality(p_places);
  END IF;
END
$$;

-- When the last window of a counter ends; '-infinity' without a limit.
CREATE OR REPLACE FUNCTION last_window_end(p_counter limit_counter) RETURNS timestamptz
  LANGUAGE plpgsql IMMUTABLE
AS $$
DECLARE
  v_last timestamptz := '-infinity';
BEGIN
  FOR i IN 1..cardinality(p_counter.window_ends) LOOP
    v_last := greatest(v_last, p_counter.window_ends[i]);
  END LOOP;
  RETURN v_last;
END
$$;
