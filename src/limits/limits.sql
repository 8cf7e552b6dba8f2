-- Limits: their definitions, and what a new one has already counted. counters.sql applies them to calls.

-- The limits of an owner, with what is counted for a user: of a key all that apply to its calls, of an account its own and its
-- plan's, both with the requests per minute and the active keys. Limits of a plan (lane 1024) have no counters of their own.
CREATE OR REPLACE FUNCTION view_limits(p_lane smallint, p_owner_id text, p_user text) RETURNS SETOF limit_view
  LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_now constant timestamptz := clock_timestamp();
  v_key_ids constant text[] := (SELECT k.ancestors || k.id FROM keys k WHERE k.lane = p_lane AND k.id = p_owner_id);
  v_account_id constant text := coalesce(
    (SELECT k.account_id FROM keys k WHERE k.lane = p_lane AND k.id = p_owner_id), p_owner_id);
  v_plan constant text := CASE p_lane WHEN 1024 THEN p_owner_id
    ELSE (SELECT a.plan FROM accounts a WHERE a.lane = p_lane AND a.id = p_owner_id) END;
BEGIN
  RETURN QUERY SELECT * FROM count_limits(p_lane, v_account_id,
    (SELECT user_digest(a.user_salt, p_user) FROM accounts a WHERE a.lane = p_lane AND a.id = v_account_id), ARRAY(
    SELECT l FROM limits_of_keys(p_lane, v_account_id, v_key_ids, true, v_now) l WHERE p_lane <> 1024
    UNION ALL
    SELECT (l.id, l.owner_id, p_owner_id, l.metric, l.period,
            CASE WHEN l.temporary_until > v_now THEN l.temporary_amount ELSE l.amount END, l.model, l.per_user)::applied_limit
    FROM limits l WHERE l.lane = 1024 AND l.owner_id = v_plan));
  RETURN QUERY
  SELECT '', CASE WHEN m.metric = 'requests' AND o.rate_limit_rpm IS NOT NULL THEN p_owner_id ELSE o.plan END, p_owner_id, m.metric,
         CASE m.metric WHEN 'requests' THEN 'minute' ELSE '' END, m.amount, '', false, NULL::bigint, NULL::timestamptz,
         m.amount, m.spent, m.held, CASE m.metric WHEN 'requests' THEN window_end('minute', v_now) END, NULL::timestamptz,
         false
  FROM (
    SELECT k.plan, k.rate_limit_rpm, k.may_exceed_plan FROM keys k WHERE k.lane = p_lane AND k.id = p_owner_id
    UNION ALL
    SELECT a.plan, NULL, false FROM accounts a WHERE a.lane = p_lane AND a.id = p_owner_id
  ) o
  JOIN plans p ON p.name = o.plan
  CROSS JOIN LATERAL (
    SELECT 'requests', effective_rpm(o.rate_limit_rpm, o.may_exceed_plan, p.rpm)::bigint, coalesce((
      SELECT w.used FROM key_minutes w WHERE w.lane = p_lane AND w.key_id = p_owner_id
        AND w.minute >= floor(extract(epoch FROM v_now) / 60)), 0)::bigint, 0::bigint
    UNION ALL
    SELECT 'active_keys', p.max_active_keys::bigint, 0::bigint, (
      SELECT count(*) FROM keys k WHERE k.lane = p_lane AND k.account_id = v_account_id AND k.plan = o.plan
        AND k.revoked_at IS NULL AND coalesce(k.expires_at, 'infinity') > v_now)
  ) m (metric, amount, spent, held);
END
$$;

-- The limits that apply to the calls of a key at a time: those of its account, of the key and its ancestors (p_key_ids), and of
-- their plans. Limits for other models are among them. The planner inlines it: a call for each hold takes much longer.
CREATE OR REPLACE FUNCTION limits_of_keys(
  p_lane smallint, p_account_id text, p_key_ids text[], p_with_plans boolean, p_at timestamptz
) RETURNS SETOF applied_limit
  LANGUAGE sql STABLE ROWS 5
AS $$
  SELECT l.id, l.owner_id, l.owner_id, l.metric, l.period,
         CASE WHEN l.temporary_until > p_at THEN l.temporary_amount ELSE l.amount END, l.model, l.per_user
  FROM limits l WHERE l.lane = p_lane AND l.owner_id = ANY (array_append(p_key_ids, p_account_id))
  UNION ALL
  SELECT l.id, l.owner_id, k.id, l.metric, l.period,
         CASE WHEN l.temporary_until > p_at THEN l.temporary_amount ELSE l.amount END, l.model, l.per_user
  FROM keys k JOIN limits l ON l.lane = 1024 AND l.owner_id = k.plan
  WHERE p_with_plans AND k.lane = p_lane AND k.id = ANY (p_key_ids)
$$;

-- The limits that apply, with the counted amounts of one user of the account.
CREATE OR REPLACE FUNCTION count_limits(p_lane smallint, p_account_id text, p_user_id text, p_applied applied_limit[])
  RETURNS SETOF limit_view
  LANGUAGE plpgsql STABLE ROWS 5
AS $$
DECLARE
  v_now constant timestamptz := clock_timestamp();
BEGIN
  RETURN QUERY
  SELECT d.id, a.owner_id, a.subject_id, d.metric, d.period, d.amount, d.model, d.per_user, d.temporary_amount,
         d.temporary_until, a.amount, CASE WHEN c.window_end > v_now THEN c.spent ELSE 0 END, coalesce(c.held, 0),
         nullif(window_end(d.period, v_now), 'infinity'),
         CASE WHEN c.window_end > v_now AND isfinite(c.counted_since) AND c.counted_since > window_start(d.period, v_now)
           THEN c.counted_since END, d.is_of_operator
  FROM unnest(p_applied) a
  JOIN limits d ON d.lane IN (p_lane, 1024) AND d.id = a.id
  LEFT JOIN LATERAL (
    SELECT x.* FROM limit_counters i
    CROSS JOIN LATERAL unnest((i.counter).limit_ids, (i.counter).window_ends, (i.counter).spent, (i.counter).held, (i.counter).counted_since)
      AS x (limit_id, window_end, spent, held, counted_since)
    WHERE i.lane = p_lane AND i.account_id = p_account_id AND i.subject_id = a.subject_id
      AND i.plan = CASE d.lane WHEN 1024 THEN d.owner_id ELSE '' END
      AND i.user_id = CASE WHEN d.per_user THEN p_user_id ELSE '' END AND x.limit_id = a.id
  ) c ON true
  ORDER BY a.owner_id, d.metric, d.period, d.model, d.per_user;
END
$$;

-- Sets a limit of an account, a key or a plan for an operator, or of an account for a member; p_limit is its row as JSON. An
-- account and a key have their lane, a plan has lane 1024. Returns the limit.
CREATE OR REPLACE FUNCTION put_limit(p_caller caller, p_lane smallint, p_owner_id text, p_limit text) RETURNS SETOF limit_view
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_proven constant keys := prove(p_caller, p_lane);
  v_account_id constant text := lock_limit_owner(p_lane, p_owner_id);
  v_limit constant limits := json_populate_record(NULL::limits, p_limit::json);
BEGIN
  PERFORM set_limits(p_lane, v_account_id, p_owner_id, json_build_array(p_limit::json)::text, false, actor_kind(p_caller));
  PERFORM log_shared_change(p_caller, p_lane, p_owner_id, v_account_id);
  RETURN QUERY SELECT v.* FROM view_limits(p_lane, p_owner_id, '') v
    WHERE v.owner_id = p_owner_id AND v.metric = v_limit.metric AND v.period = v_limit.period AND v.model = v_limit.model
      AND v.per_user = v_limit.per_user;
END
$$;

-- Removes a limit of an account, a key or a plan for an operator, or of an account for a member. Running calls lose nothing: what
-- they hold of it is forgotten.
CREATE OR REPLACE FUNCTION delete_limit(p_caller caller, p_lane smallint, p_owner_id text, p_id text) RETURNS void
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_proven constant keys := prove(p_caller, p_lane);
  v_account_id constant text := lock_limit_owner(p_lane, p_owner_id);
BEGIN
  PERFORM refuse('not_found', 'The owner has no such limit.')
    WHERE NOT remove_limit(p_lane, v_account_id, p_owner_id, p_id, actor_kind(p_caller));
  IF p_lane <> no_lane() THEN
    PERFORM mark_limited(p_lane, v_account_id, p_owner_id);
  END IF;
  PERFORM log_shared_change(p_caller, p_lane, p_owner_id, v_account_id);
END
$$;

-- Locks the account of an owner of limits and returns its id: empty for a plan, which belongs to no account.
CREATE OR REPLACE FUNCTION lock_limit_owner(p_lane smallint, p_owner_id text) RETURNS text
  LANGUAGE plpgsql
AS $$
DECLARE
  v_account_id text;
BEGIN
  IF p_lane = no_lane() THEN
    PERFORM 1 FROM plans p WHERE p.name = p_owner_id FOR UPDATE;
    PERFORM refuse('not_found', 'There is no such plan.') WHERE NOT FOUND;
    RETURN '';
  END IF;
  SELECT k.account_id INTO v_account_id FROM keys k WHERE k.lane = p_lane AND k.id = p_owner_id;
  v_account_id := coalesce(v_account_id, p_owner_id);
  PERFORM require_open_account(p_lane, v_account_id);
  RETURN v_account_id;
END
$$;

-- Sets limits of an account, a key or a plan (lane 1024): a JSON list of rows, with ids for new ones. A limit with the same
-- metric, window, model and "per" keeps what it has counted. p_replaces: the owner's other limits are removed. A member may only
-- repeat the limits of operators, and a key may also lower them; see actor_kind. The caller holds the lock of the account.
CREATE OR REPLACE FUNCTION set_limits(
  p_lane smallint, p_account_id text, p_owner_id text, p_limits text, p_replaces boolean, p_actor text
) RETURNS void
  LANGUAGE plpgsql
AS $$
DECLARE
  c_max constant integer := 20;
  v_now constant timestamptz := clock_timestamp();
  v_new text[];
BEGIN
  IF p_replaces THEN
    PERFORM remove_limit(p_lane, p_account_id, p_owner_id, l.id, p_actor) FROM limits l
      WHERE l.lane = p_lane AND l.owner_id = p_owner_id AND NOT EXISTS (
        SELECT 1 FROM json_populate_recordset(NULL::limits, p_limits::json) n WHERE n.metric = l.metric
          AND n.period = l.period AND n.model = l.model AND n.per_user = l.per_user);
  END IF;
  PERFORM refuse_change_of_limit() FROM limits l
    JOIN json_populate_recordset(NULL::limits, p_limits::json) n
      ON (n.metric, n.period, n.model, n.per_user) = (l.metric, l.period, l.model, l.per_user)
    CROSS JOIN LATERAL (SELECT CASE WHEN l.temporary_until > v_now THEN l.temporary_until END) r (until)
    WHERE l.lane = p_lane AND l.owner_id = p_owner_id AND l.is_of_operator AND CASE p_actor
      WHEN 'operator' THEN false
      WHEN 'key' THEN n.amount > l.amount OR n.temporary_until > coalesce(r.until, '-infinity')
        OR n.temporary_amount > l.temporary_amount
      ELSE n.amount <> l.amount OR (n.temporary_until, n.temporary_amount) IS DISTINCT FROM
        (r.until, CASE WHEN r.until IS NOT NULL THEN l.temporary_amount END) END;
  WITH stored AS (
    INSERT INTO limits AS l (lane, id, owner_id, metric, period, amount, model, per_user, temporary_amount, temporary_until,
                             created_at, is_of_operator)
    SELECT p_lane, n.id, p_owner_id, n.metric, n.period, n.amount, n.model, n.per_user, n.temporary_amount,
           n.temporary_until, v_now, p_actor = 'operator'
    FROM json_populate_recordset(NULL::limits, p_limits::json) n
    ON CONFLICT ON CONSTRAINT limit_once DO UPDATE SET amount = excluded.amount,
      temporary_amount = excluded.temporary_amount, temporary_until = excluded.temporary_until,
      -- A form that repeats the limits of a key changes none of them.
      is_of_operator = l.is_of_operator OR excluded.is_of_operator AND NOT (p_replaces
        AND (l.amount, l.temporary_amount, l.temporary_until)
          IS NOT DISTINCT FROM (excluded.amount, excluded.temporary_amount, excluded.temporary_until))
    RETURNING l.id, l.created_at
  )
  SELECT array_agg(s.id) INTO v_new FROM stored s WHERE s.created_at = v_now;
  -- Customers leave room for the limits of operators, and the reverse.
  PERFORM refuse('invalid_argument',
      format('an owner can have at most %s limits of operators and %1$s others', c_max), '{"field":"limits"}')
    FROM limits l WHERE l.lane = p_lane AND l.owner_id = p_owner_id GROUP BY l.is_of_operator HAVING count(*) > c_max;
  IF p_account_id <> '' THEN
    PERFORM mark_limited(p_lane, p_account_id, p_owner_id);
    PERFORM count_spent(p_lane, p_account_id, p_owner_id, v_new);
  END IF;
END
$$;

-- Gives new limits of an account or a key counters with what the usage of their windows is already. Those of a minute start at
-- zero. Users that the usage counts as "(other)" are not known, so that a counter of a user is not exact if there are any.
CREATE OR REPLACE FUNCTION count_spent(p_lane smallint, p_account_id text, p_owner_id text, p_limit_ids text[]) RETURNS void
  LANGUAGE plpgsql
AS $$
DECLARE
  v_at timestamptz;
  v_version bigint;
  v_sums spent_sum[];
BEGIN
  SELECT greatest(clock_timestamp(), a.last_at), a.limits_version INTO v_at, v_version
    FROM accounts a WHERE a.lane = p_lane AND a.id = p_account_id;
  v_sums := ARRAY(
    SELECT ROW(l.id, CASE WHEN l.per_user THEN u.user_id ELSE '' END,
      sum(CASE l.metric WHEN 'cost' THEN u.cost_micros WHEN 'cost_alert' THEN u.cost_micros WHEN 'generations' THEN u.requests
        ELSE u.input + u.cached_input + u.cache_write + u.output + u.reasoning END))::spent_sum
    FROM limits l
    CROSS JOIN LATERAL (SELECT window_start(l.period, v_at) AS start) w
    JOIN usage_quarters u ON u.lane = p_lane AND u.account_id = p_account_id
      AND u.quarter >= CASE WHEN w.start = '-infinity' THEN 0 ELSE floor(extract(epoch FROM w.start) / 900)::integer END
    WHERE l.lane = p_lane AND l.id = ANY (p_limit_ids) AND l.period NOT IN ('', 'minute')
      AND (l.model = '' OR u.model = l.model)
      AND (p_owner_id = p_account_id OR u.key_id = p_owner_id OR EXISTS (
        SELECT 1 FROM keys k WHERE k.lane = p_lane AND k.id = u.key_id AND p_owner_id = ANY (k.ancestors)))
    GROUP BY l.id, CASE WHEN l.per_user THEN u.user_id ELSE '' END);
  IF cardinality(v_sums) = 0 THEN
    RETURN;
  END IF;
  PERFORM align_counters(p_lane, p_account_id, ARRAY(
    SELECT DISTINCT ROW(p_owner_id, '', s.user_id)::counter_name FROM unnest(v_sums) s), v_version, NULL, v_at);
  UPDATE limit_counters c SET counter.spent = n.spent, counter.counted_since = n.counted_since
  FROM (
    SELECT o.user_id, array_agg(coalesce(s.spent, x.spent) ORDER BY x.n) AS spent,
           array_agg(CASE WHEN s.limit_id IS NULL THEN x.counted_since
             WHEN x.per_user AND EXISTS (SELECT 1 FROM unnest(v_sums) i WHERE i.limit_id = x.limit_id AND i.user_id = '(other)')
               THEN 'infinity'::timestamptz ELSE '-infinity' END ORDER BY x.n) AS counted_since
    FROM limit_counters o
    CROSS JOIN LATERAL unnest((o.counter).limit_ids, (o.counter).per_users, (o.counter).spent, (o.counter).counted_since) WITH ORDINALITY
      AS x (limit_id, per_user, spent, counted_since, n)
    LEFT JOIN unnest(v_sums) s ON s.limit_id = x.limit_id AND s.user_id = o.user_id
    WHERE o.lane = p_lane AND o.account_id = p_account_id AND o.subject_id = p_owner_id AND o.plan = ''
    GROUP BY o.user_id
  ) n
  WHERE c.lane = p_lane AND c.account_id = p_account_id AND c.subject_id = p_owner_id AND c.plan = '' AND c.user_id = n.user_id;
END
$$;

-- Removes a limit of an account, a key or a plan, and the counters of an account or key that has no other. Other counters go when
-- their row is used again or swept. The caller holds the lock of the account and marks it. Returns whether there was such a
-- limit.
CREATE OR REPLACE FUNCTION remove_limit(p_lane smallint, p_account_id text, p_owner_id text, p_id text, p_actor text)
  RETURNS boolean
  LANGUAGE plpgsql
AS $$
DECLARE
  v_users integer;
BEGIN
  PERFORM refuse_change_of_limit() FROM limits l
    WHERE l.lane = p_lane AND l.owner_id = p_owner_id AND l.id = p_id AND l.is_of_operator AND p_actor <> 'operator';
  DELETE FROM limits l WHERE l.lane = p_lane AND l.owner_id = p_owner_id AND l.id = p_id;
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  WITH deleted AS (
    DELETE FROM limit_counters c WHERE c.lane = p_lane AND c.account_id = p_account_id AND c.subject_id = p_owner_id
      AND c.plan = '' AND NOT EXISTS (SELECT 1 FROM limits l WHERE l.lane = p_lane AND l.owner_id = p_owner_id)
    RETURNING c.user_id
  )
  SELECT count(*) INTO v_users FROM deleted d WHERE d.user_id <> '';
  IF v_users > 0 THEN
    PERFORM count_users(p_lane, p_account_id, -v_users);
  END IF;
  RETURN true;
END
$$;

-- Refuses that a member or a key changes or removes a limit that an operator set.
CREATE OR REPLACE FUNCTION refuse_change_of_limit() RETURNS void
  LANGUAGE sql
AS $$
  SELECT refuse('invalid_argument', 'An operator of the service set this limit, and only operators can change or remove it.',
    '{"field":"limits"}')
$$;

-- Stores that the limits of an account or its keys have changed, and whether they have any, in the columns that each hold reads.
-- The caller holds the lock of the account.
CREATE OR REPLACE FUNCTION mark_limited(p_lane smallint, p_account_id text, p_owner_id text) RETURNS void
  LANGUAGE plpgsql
AS $$
BEGIN
  IF p_owner_id <> p_account_id THEN
    UPDATE keys k SET is_limited = t.is_limited FROM (
      SELECT i.id, EXISTS (SELECT 1 FROM limits l WHERE l.lane = p_lane AND l.owner_id = ANY (i.ancestors || i.id)) AS is_limited
      FROM keys i
      WHERE i.lane = p_lane AND i.account_id = p_account_id AND (i.id = p_owner_id OR p_owner_id = ANY (i.ancestors))
    ) t WHERE k.lane = p_lane AND k.id = t.id AND k.is_limited <> t.is_limited;
  END IF;
  UPDATE accounts a SET
    limits_version = a.limits_version + 1,
    is_limited = EXISTS (SELECT 1 FROM limits l WHERE l.lane = p_lane AND l.owner_id = p_account_id),
    has_limited_keys = EXISTS (SELECT 1 FROM keys k WHERE k.lane = p_lane AND k.account_id = p_account_id AND k.is_limited)
  WHERE a.lane = p_lane AND a.id = p_account_id;
END
$$;

-- The start of the window that a time is in, in UTC; weeks start on Monday. '-infinity' for the windows that never end.
CREATE OR REPLACE FUNCTION window_start(p_period text, p_at timestamptz) RETURNS timestamptz
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN CASE WHEN p_period IN ('', 'total') THEN '-infinity'::timestamptz
    ELSE date_trunc(p_period, p_at AT TIME ZONE 'UTC') AT TIME ZONE 'UTC' END;

-- The end of the window that a time is in, in UTC; weeks start on Monday. 'infinity' for the windows that never end.
CREATE OR REPLACE FUNCTION window_end(p_period text, p_at timestamptz) RETURNS timestamptz
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN CASE WHEN p_period IN ('', 'total') THEN 'infinity'::timestamptz
    ELSE (date_trunc(p_period, p_at AT TIME ZONE 'UTC') + ('1 ' || p_period)::interval) AT TIME ZONE 'UTC' END;
