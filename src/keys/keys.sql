-- Keys: what a caller may create, lists and searches, changes, and the end of a key.

-- Creates a key from p_key, its columns and limits as JSON. A key of another key, its parent, has the
-- parent's plan and at most its scopes, limit, expiry, models and addresses; what is omitted is the parent's, and of the default
-- scopes those that the parent has. A member's key has the plan of the account and scopes that the role covers. Only an operator
-- chooses the plan and may exceed its limit. A member has one key of the playground: a repetition renews it. Returns the key, or
-- how long the account must wait.
CREATE OR REPLACE FUNCTION create_key(
  p_caller caller, p_lane smallint, p_account_id text, p_key text, p_default_scopes smallint, p_is_playground boolean DEFAULT false
) RETURNS SETOF created_keys
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_parent constant keys := prove(p_caller, p_lane);
  v_account constant accounts := require_open_account(p_lane, p_account_id);
  v_is_operator constant boolean := actor_kind(p_caller) = 'operator';
  v_given constant keys := jsonb_populate_record(NULL::keys, p_key::jsonb);
  v_limits constant text := p_key::jsonb ->> 'limits';
  v_plan constant plans := require_plan(coalesce(v_parent.plan, CASE WHEN v_is_operator THEN nullif(v_given.plan, '') END, v_account.plan));
  v_key keys := v_given;
  v_id text;
  v_result created_keys;
BEGIN
  v_key.scopes := coalesce(v_given.scopes, p_default_scopes);
  IF v_parent.id IS NOT NULL THEN
    PERFORM refuse('invalid_argument', 'This key would be the ninth of a chain in which each key created the next; eight are allowed.')
      WHERE cardinality(v_parent.ancestors) >= 7;
    v_key.scopes := scopes_of_child(v_parent.scopes, v_given.scopes, p_default_scopes);
    -- A limit that an operator gave to the parent may exceed the plan; the limit of the new key may not.
    PERFORM check_key_bounds(v_parent, effective_rpm(v_parent.rate_limit_rpm, false, v_plan.rpm), v_given.rate_limit_rpm,
      v_given.expires_at, v_given.models, v_given.allowed_cidrs);
    PERFORM check_limit_bounds(v_parent, v_limits::json);
  ELSIF NOT v_is_operator THEN
    PERFORM check_rpm(NULL, v_given.rate_limit_rpm, v_plan);
    PERFORM refuse('invalid_argument', format('must be among the scopes of your role: %s', names_of_scopes(p_caller.covered_scopes)),
      '{"field":"scopes"}') WHERE v_key.scopes & ~p_caller.covered_scopes <> 0;
  END IF;
  IF p_is_playground THEN
    v_id := renew_playground_key(p_caller, v_plan, v_given);
  END IF;
  IF v_id IS NULL THEN
    IF NOT v_is_operator THEN
      v_result.wait_seconds := count_key_creation(p_lane, v_account.id, v_plan.max_keys_created_per_hour);
      IF v_result.wait_seconds > 0 THEN
        v_result.max_keys_created_per_hour := v_plan.max_keys_created_per_hour;
        v_result.plan := v_plan.name;
        RETURN NEXT v_result;
        RETURN;
      END IF;
    END IF;
    v_key.lane := p_lane;
    v_key.account_id := v_account.id;
    v_key.plan := v_plan.name;
    -- The limit of the parent is stored even if the plan's is lower, so that the new key stays below its parent when the plan is raised.
    v_key.rate_limit_rpm := coalesce(v_given.rate_limit_rpm, v_parent.rate_limit_rpm);
    v_key.may_exceed_plan := v_is_operator AND v_given.rate_limit_rpm IS NOT NULL;
    v_key.expires_at := coalesce(v_given.expires_at, v_parent.expires_at);
    v_key.created_at := clock_timestamp();
    v_key.warned_days := days_warned(v_key.created_at, v_key.expires_at);
    PERFORM refuse('invalid_argument', 'must be in the future', '{"field":"expires_at"}') WHERE v_key.expires_at <= v_key.created_at;
    v_key.ancestors := CASE WHEN v_parent.id IS NULL THEN '{}' ELSE v_parent.ancestors || v_parent.id END;
    v_key.is_limited := coalesce(v_parent.is_limited, false);
    v_key.models := coalesce(v_given.models, v_parent.models);
    v_key.allowed_cidrs := coalesce(v_given.allowed_cidrs, v_parent.allowed_cidrs);
    v_key.playground_of := CASE WHEN p_is_playground THEN p_caller.id END;
    INSERT INTO keys SELECT v_key.*;
    PERFORM check_key_cap(p_lane, v_account.id, v_plan);
    IF v_limits IS NOT NULL THEN
      PERFORM set_limits(p_lane, v_account.id, v_key.id, v_limits, true, actor_kind(p_caller));
    END IF;
    PERFORM write_key_event(v_key, 'key.created', '{}');
    v_id := v_key.id;
  END IF;
  RETURN QUERY SELECT 0, v_plan.max_keys_created_per_hour, k.* FROM keys_by_id(p_lane, ARRAY[v_id]) k;
  PERFORM log_change(p_caller, p_lane, v_id, v_account.id);
END
$$;

-- Refuses values of a key that exceed those of the calling key. Values that are not given (NULL) are the calling key's.
CREATE OR REPLACE FUNCTION check_key_bounds(
  p_caller keys, p_max_rpm integer, p_rate_limit_rpm integer, p_expires_at timestamptz, p_models text[],
  p_allowed_cidrs cidr[]
) RETURNS void
  LANGUAGE plpgsql
AS $$
BEGIN
  PERFORM refuse('invalid_argument',
    format('must be at most %s, the lower of the limits of the calling key and of its plan "%s"', p_max_rpm, p_caller.plan),
    '{"field":"rate_limit_rpm"}') WHERE p_rate_limit_rpm > p_max_rpm;
  PERFORM refuse('invalid_argument',
    format('must be no later than %s, when the calling key expires',
      to_char(p_caller.expires_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')),
    '{"field":"expires_at"}') WHERE p_expires_at > p_caller.expires_at;
  PERFORM refuse('invalid_argument',
    format('must be among the models of the calling key: %s', array_to_string(p_caller.models, ', ')), '{"field":"models"}')
    WHERE NOT p_models <@ p_caller.models;
  PERFORM refuse('invalid_argument', format('must lie within the addresses of the calling key: %s',
      array_to_string(p_caller.allowed_cidrs, ', ')), '{"field":"allowed_cidrs"}')
    WHERE p_caller.allowed_cidrs IS NOT NULL AND EXISTS (SELECT 1 FROM unnest(p_allowed_cidrs) c
      WHERE NOT EXISTS (SELECT 1 FROM unnest(p_caller.allowed_cidrs) a WHERE c <<= a));
END
$$;

-- Refuses requests per minute that only an operator may give: more than the plan has, or than an operator gave to the key. p_key
-- is NULL for a new key.
CREATE OR REPLACE FUNCTION check_rpm(p_key keys, p_rate_limit_rpm integer, p_plan plans) RETURNS void
  LANGUAGE plpgsql
AS $$
BEGIN
  IF p_key.may_exceed_plan THEN
    PERFORM refuse('invalid_argument', format('must be at most %s, the limit that an operator set for this key', p_key.rate_limit_rpm),
      '{"field":"rate_limit_rpm"}') WHERE coalesce(p_rate_limit_rpm, p_plan.rpm) > p_key.rate_limit_rpm;
  ELSIF p_rate_limit_rpm > p_plan.rpm THEN
    PERFORM refuse('invalid_argument', format('must be at most %s, the limit of the plan "%s"', p_plan.rpm, p_plan.name),
      '{"field":"rate_limit_rpm"}');
  END IF;
END
$$;

-- Refuses limits above the same limits of the calling key or of a key that created it. p_limits is as in set_limits.
CREATE OR REPLACE FUNCTION check_limit_bounds(p_caller keys, p_limits json) RETURNS void
  LANGUAGE plpgsql
AS $$
DECLARE
  v_above record;
BEGIN
  IF coalesce(json_typeof(p_limits), 'null') = 'null' THEN
    RETURN;
  END IF;
  -- A temporary amount counts until it ends.
  SELECT g.n - 1 AS i, CASE WHEN n.amount > l.amount THEN 'amount' ELSE 'temporary_amount' END AS field,
         CASE WHEN n.amount > l.amount THEN l.amount ELSE t.amount END AS most
    INTO v_above
    FROM json_array_elements(p_limits) WITH ORDINALITY g (given, n)
    CROSS JOIN LATERAL json_populate_record(NULL::limits, g.given) n
    JOIN limits l ON l.lane = p_caller.lane AND l.owner_id = ANY (p_caller.ancestors || p_caller.id)
      AND (l.metric, l.period, l.model, l.per_user) = (n.metric, n.period, n.model, n.per_user)
    CROSS JOIN LATERAL (
      SELECT CASE WHEN l.temporary_until >= n.temporary_until THEN l.temporary_amount ELSE l.amount END
    ) t (amount)
    WHERE n.amount > l.amount OR n.temporary_amount > t.amount
    ORDER BY g.n, most LIMIT 1;
  PERFORM refuse('invalid_argument',
    format('must be at most %s, the same limit of the calling key or of a key that created it', v_above.most),
    jsonb_build_object('field', format('limits[%s].%s', v_above.i, v_above.field))) WHERE FOUND;
END
$$;

-- The scopes of a key that another key creates: those of the call, by default those of p_default that the parent
-- has. Refuses a scope that the parent lacks.
CREATE OR REPLACE FUNCTION scopes_of_child(p_parent smallint, p_named smallint, p_default smallint) RETURNS smallint
  LANGUAGE plpgsql IMMUTABLE
AS $$
BEGIN
  IF p_named & ~p_parent <> 0 THEN
    PERFORM refuse('invalid_argument', format('must be among the scopes of the calling key: %s', names_of_scopes(p_parent)),
      '{"field":"scopes"}');
  ELSIF p_named IS NULL AND p_parent & p_default = 0 THEN
    PERFORM refuse('invalid_argument',
      format('must be given, because the calling key has none of the default scopes; it has: %s', names_of_scopes(p_parent)),
      '{"field":"scopes"}');
  END IF;
  RETURN coalesce(p_named, p_parent & p_default);
END
$$;

-- The names of scopes, for texts.
CREATE OR REPLACE FUNCTION names_of_scopes(p_scopes smallint) RETURNS text
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN concat_ws(', ', CASE WHEN p_scopes & 1 <> 0 THEN 'generate' END, CASE WHEN p_scopes & 2 <> 0 THEN 'read' END,
    CASE WHEN p_scopes & 4 <> 0 THEN 'keys' END, CASE WHEN p_scopes & 8 <> 0 THEN 'webhooks' END,
    CASE WHEN p_scopes & 16 <> 0 THEN 'billing' END);

-- Refuses when the account has more active keys on the plan than the plan allows.
CREATE OR REPLACE FUNCTION check_key_cap(p_lane smallint, p_account_id text, p_plan plans) RETURNS void
  LANGUAGE plpgsql
AS $$
DECLARE
  -- A volatile function in the condition would prevent an index look-up.
  v_now constant timestamptz := clock_timestamp();
  v_active integer;
BEGIN
  SELECT count(*) INTO v_active FROM keys
    WHERE lane = p_lane AND account_id = p_account_id AND plan = p_plan.name
      AND revoked_at IS NULL AND coalesce(expires_at, 'infinity') > v_now;
  PERFORM refuse('key_limit_reached',
    format('The plan "%s" allows %s active keys. Revoke an unused key to free a slot.', p_plan.name, p_plan.max_active_keys)
      || CASE WHEN EXISTS (
           SELECT 1 FROM keys WHERE lane = p_lane AND account_id = p_account_id AND plan = p_plan.name AND playground_of IS NOT NULL
             AND revoked_at IS NULL AND expires_at > v_now
         ) THEN ' Keys of the playground count too; they expire within an hour.' ELSE '' END,
    jsonb_build_object('plan', p_plan.name, 'max_active_keys', p_plan.max_active_keys::text))
    WHERE v_active > p_plan.max_active_keys;
END
$$;

-- Counts a key that an account creates in this hour. Returns 0, or the seconds to wait when p_max were created: not an error,
-- which would roll back a restart of the count after the clock was set back. The caller holds the lane.
CREATE OR REPLACE FUNCTION count_key_creation(p_lane smallint, p_account_id text, p_max integer) RETURNS integer
  LANGUAGE plpgsql
AS $$
DECLARE
  v_epoch constant numeric := extract(epoch FROM clock_timestamp());
  v_now_hour constant integer := floor(v_epoch / 3600);
  v_hour integer;
  v_created integer;
BEGIN
  SELECT counting_window(c.hour, v_now_hour), CASE WHEN c.hour >= v_now_hour THEN c.created ELSE 0 END
    INTO v_hour, v_created FROM key_creations c WHERE c.lane = p_lane AND c.account_id = p_account_id;
  IF NOT FOUND THEN
    v_hour := v_now_hour;
    v_created := 0;
  END IF;
  INSERT INTO key_creations AS c (lane, account_id, hour, created)
    VALUES (p_lane, p_account_id, v_hour, v_created + (v_created < p_max)::integer)
    ON CONFLICT ON CONSTRAINT key_creations_pkey DO UPDATE SET hour = excluded.hour, created = excluded.created;
  RETURN CASE WHEN v_created < p_max THEN 0
    -- An hour in the future ends in more than 3,600 s, the longest wait in a response.
    WHEN v_hour > v_now_hour THEN 3600
    ELSE ceil(3600 - mod(v_epoch, 3600)) END;
END
$$;

-- Gives the key of a member's playground a new secret and expiry. Returns its id; NULL if there is none. The caller is proven.
CREATE OR REPLACE FUNCTION renew_playground_key(p_caller caller, p_plan plans, p_given keys) RETURNS text
  LANGUAGE plpgsql
AS $$
DECLARE
  v_key keys;
BEGIN
  SELECT * INTO v_key FROM keys k
    WHERE k.lane = lane_of(p_caller.account_id) AND k.account_id = p_caller.account_id AND k.playground_of = p_caller.id
      AND k.revoked_at IS NULL FOR NO KEY UPDATE;
  IF NOT FOUND THEN
    RETURN NULL;
  END IF;
  PERFORM replace_secret(v_key, p_given.fingerprint, p_given.visible_start, p_given.visible_end, 0);
  UPDATE keys k SET expires_at = p_given.expires_at, plan = p_plan.name WHERE k.lane = v_key.lane AND k.id = v_key.id;
  IF v_key.expires_at <= clock_timestamp() THEN
    PERFORM check_key_cap(v_key.lane, v_key.account_id, p_plan);
  END IF;
  RETURN v_key.id;
END
$$;

-- A page of an account's keys, newest first, or the one key that p_id names.
CREATE OR REPLACE FUNCTION view_keys(
  p_lane smallint, p_account_id text, p_id text, p_before text, p_limit integer, p_with_playground boolean DEFAULT true
) RETURNS SETOF key_view
  LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_ids text[];
BEGIN
  -- One statement per case: a single statement for all cases would read every key of the lane.
  IF p_id <> '' THEN
    v_ids := ARRAY[p_id];
  ELSIF p_before = '' THEN
    v_ids := ARRAY(SELECT k.id FROM keys k WHERE k.lane = p_lane AND k.account_id = p_account_id
                     AND (p_with_playground OR k.playground_of IS NULL)
                   ORDER BY k.id DESC LIMIT p_limit);
  ELSE
    v_ids := ARRAY(SELECT k.id FROM keys k WHERE k.lane = p_lane AND k.account_id = p_account_id AND k.id < p_before
                     AND (p_with_playground OR k.playground_of IS NULL)
                   ORDER BY k.id DESC LIMIT p_limit);
  END IF;
  RETURN QUERY SELECT * FROM keys_by_id(p_lane, v_ids) k WHERE k.account_id = p_account_id;
END
$$;

-- The keys with these ids, newest first, as customers and operators see them. Changes return their key with it: PostgreSQL
-- inlines it.
CREATE OR REPLACE FUNCTION keys_by_id(p_lane smallint, p_ids text[]) RETURNS SETOF key_view
  LANGUAGE sql STABLE
AS $$
  SELECT k.id, k.account_id, k.name, k.plan, k.scopes,
         CASE WHEN k.revoked_at IS NOT NULL THEN 'revoked'
              WHEN k.expires_at <= clock_timestamp() THEN 'expired' ELSE 'active' END,
         effective_rpm(k.rate_limit_rpm, k.may_exceed_plan, p.rpm), k.visible_start, k.visible_end, k.created_at,
         k.revoked_at, k.expires_at, w.last_used_at, s.expires_at, array_to_string(k.models, ','),
         CASE WHEN k.is_limited THEN (
           SELECT json_agg(l)::text FROM count_limits(k.lane, k.account_id, '', ARRAY(
             SELECT o FROM limits_of_keys(k.lane, k.id, '{}', false, clock_timestamp()) o)) l) END,
         array_to_string(k.allowed_cidrs, ',')
  FROM keys k
  JOIN plans p ON p.name = k.plan
  LEFT JOIN key_minutes w ON w.lane = k.lane AND w.key_id = k.id
  LEFT JOIN previous_secrets s ON s.lane = k.lane AND s.key_id = k.id AND s.expires_at > clock_timestamp()
  WHERE k.lane = p_lane AND k.id = ANY (p_ids)
  ORDER BY k.id DESC
$$;

-- A page of the keys of all accounts: the one with the id, those with the visible characters (an empty end matches all), those
-- whose name starts with the text, or all, newest first; those found by their name follow, in its order. p_after is the position
-- of the last key as JSON: list, sorted name and id; 0 is the list of the first page.
CREATE OR REPLACE FUNCTION search_keys(
  p_id text, p_start text, p_end text, p_name text, p_after text, p_limit integer
) RETURNS SETOF found_keys
  LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT
  SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off
AS $$
DECLARE
  v_after constant json := p_after;
  -- 1: by id, by visible characters or all; 2: by name.
  v_list constant integer := (v_after ->> 0)::integer;
  v_name constant text := lower(p_name);
  v_is_all constant boolean := p_id = '' AND p_start = '' AND p_name = '';
  -- Greater than every id in the order of bytes.
  v_before constant text := CASE WHEN v_list = 1 THEN v_after ->> 2 ELSE '~' END;
  v_after_name constant text := CASE WHEN v_list = 2 THEN v_after ->> 1 ELSE v_name END;
  v_after_id constant text := CASE WHEN v_list = 2 THEN v_after ->> 2 ELSE '' END;
BEGIN
  RETURN QUERY
  WITH found AS (
    (SELECT 1 AS list, '' AS sorted_name, k.lane, k.id FROM keys k
     WHERE p_id <> '' AND v_list = 0 AND k.lane = lane_of(p_id) AND k.id = p_id)
    UNION ALL
    (SELECT 1, '', k.lane, k.id FROM keys k
     WHERE p_start <> '' AND v_list <= 1 AND k.visible_start = p_start AND p_end IN ('', k.visible_end)
       AND k.id COLLATE "C" < v_before
     ORDER BY k.id COLLATE "C" DESC LIMIT p_limit)
    UNION ALL
    (SELECT 1, '', k.lane, k.id FROM keys k
     WHERE v_is_all AND k.id COLLATE "C" < v_before ORDER BY k.id COLLATE "C" DESC LIMIT p_limit)
    UNION ALL
    -- The names that start with the text follow each other, so the first other name ends them.
    (SELECT 2, n.sorted_name, n.lane, n.id FROM (
       SELECT lower(k.name) COLLATE "C" AS sorted_name, k.lane, k.id FROM keys k
       WHERE p_name <> '' AND v_list <= 2 AND (lower(k.name) COLLATE "C", k.id COLLATE "C") > (v_after_name, v_after_id)
       ORDER BY lower(k.name) COLLATE "C", k.id COLLATE "C" LIMIT p_limit
     ) n WHERE starts_with(n.sorted_name, v_name))
  ), page AS MATERIALIZED (
    SELECT f.*, row_number() OVER () AS number FROM found f LIMIT p_limit
  )
  SELECT p.list, p.sorted_name::text, true, a.name, v.*
  FROM page p
  CROSS JOIN LATERAL keys_by_id(p.lane, ARRAY[p.id]) v
  JOIN accounts a ON a.lane = p.lane AND a.id = v.account_id
  ORDER BY p.number;
END
$$;

-- The keys of all accounts whose name contains a text after its start, in the order of the name and the id, as search_names finds
-- accounts.
CREATE OR REPLACE FUNCTION search_key_names(p_search text, p_after text, p_after_id text, p_rows integer, p_limit integer)
  RETURNS SETOF found_keys
  LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT
  SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off
AS $$
DECLARE
  v_search constant text := lower(p_search);
BEGIN
  RETURN QUERY
  WITH page AS MATERIALIZED (
    SELECT r.sorted_name, r.lane, r.id, strpos(r.sorted_name, v_search) > 1 AS is_match, r.number
    FROM (
      SELECT n.*, row_number() OVER () AS number FROM (
        SELECT lower(k.name) COLLATE "C" AS sorted_name, k.lane, k.id FROM keys k
        WHERE (lower(k.name) COLLATE "C", k.id COLLATE "C") > (p_after, p_after_id)
        ORDER BY lower(k.name) COLLATE "C", k.id COLLATE "C" LIMIT p_rows
      ) n
    ) r WHERE strpos(r.sorted_name, v_search) > 1 OR r.number = p_rows LIMIT p_limit
  )
  SELECT 3, p.sorted_name::text, p.is_match, a.name, v.*
  FROM page p
  CROSS JOIN LATERAL keys_by_id(p.lane, ARRAY[p.id]) v
  JOIN accounts a ON a.lane = p.lane AND a.id = v.account_id
  ORDER BY p.number;
END
$$;

-- The active keys that are older than p_days and were not used for so long, the oldest first, after p_after, among the next
-- p_rows keys, as search_names finds accounts.
CREATE OR REPLACE FUNCTION unused_keys(p_days integer, p_after text, p_rows integer, p_limit integer) RETURNS SETOF found_keys
  LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT
  SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off
  SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
DECLARE
  v_now constant timestamptz := clock_timestamp();
  v_before constant timestamptz := v_now - p_days * interval '1 day';
BEGIN
  RETURN QUERY
  WITH page AS MATERIALIZED (
    SELECT r.lane, r.id, r.is_match, r.number FROM (
      SELECT n.lane, n.id, row_number() OVER () AS number,
             n.created_at < v_before AND n.revoked_at IS NULL AND coalesce(n.expires_at, 'infinity') > v_now
               AND coalesce(w.last_used_at < v_before, true) AS is_match
      FROM (
        SELECT k.* FROM keys k WHERE k.id COLLATE "C" > p_after ORDER BY k.id COLLATE "C" LIMIT p_rows
      ) n
      LEFT JOIN key_minutes w ON w.lane = n.lane AND w.key_id = n.id
    ) r WHERE r.is_match OR r.number = p_rows LIMIT p_limit
  )
  SELECT 0, '', p.is_match, a.name, v.*
  FROM page p
  CROSS JOIN LATERAL keys_by_id(p.lane, ARRAY[p.id]) v
  JOIN accounts a ON a.lane = p.lane AND a.id = v.account_id
  ORDER BY p.number;
END
$$;

-- Changes a key. A calling key can give no value that exceeds its own, so that it can only tighten itself. A value that it clears
-- (null) becomes its own; limits that are cleared are removed, because those of the calling key apply anyway.
CREATE OR REPLACE FUNCTION update_key(p_caller caller, p_lane smallint, p_id text, p_changes text) RETURNS SETOF key_view
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_own constant keys := prove(p_caller, p_lane);
  v_key constant keys := key_to_change(p_caller, p_lane, p_id);
  v_given constant jsonb := p_changes;
  v_values constant keys := jsonb_populate_record(NULL::keys, v_given);
  v_changes jsonb := v_given;
BEGIN
  IF v_own.id IS NOT NULL THEN
    PERFORM check_key_bounds(v_own,
      effective_rpm(v_own.rate_limit_rpm, v_own.may_exceed_plan AND p_id = v_own.id, (require_plan(v_own.plan)).rpm),
      v_values.rate_limit_rpm, v_values.expires_at, v_values.models, v_values.allowed_cidrs);
    PERFORM check_limit_bounds(v_own, (v_given -> 'limits')::json);
    IF p_id = v_own.id AND v_given ? 'limits' THEN
      PERFORM check_limits_kept(v_own, (v_given -> 'limits')::json);
    END IF;
    -- The scopes are checked against those of the key, but the caller may have lost some since it created the key.
    PERFORM refuse('invalid_argument',
      format('must be among the scopes of the calling key: %s', names_of_scopes(v_own.scopes)), '{"field":"scopes"}')
      WHERE (v_given ->> 'scopes')::smallint & ~v_own.scopes <> 0;
    SELECT v_given || coalesce(jsonb_object_agg(c.key, to_jsonb(v_own) -> c.key), '{}') INTO v_changes
      FROM jsonb_each(v_given) c WHERE c.value = 'null';
  END IF;
  PERFORM write_key(v_key, v_changes, actor_kind(p_caller));
  PERFORM log_change(p_caller, p_lane, p_id, v_key.account_id);
  RETURN QUERY SELECT * FROM keys_by_id(p_lane, ARRAY[p_id]);
END
$$;

-- Locks the key that a proven caller is about to update or rotate. A key changes itself and the keys that it created, directly or
-- through other keys; a member the keys of the account whose scopes the role covers; an operator any key.
CREATE OR REPLACE FUNCTION key_to_change(p_caller caller, p_lane smallint, p_id text) RETURNS keys
  LANGUAGE plpgsql
AS $$
DECLARE
  v_key constant keys := key_in_reach(p_caller, p_lane, p_id);
BEGIN
  IF p_caller.kind = 'key' AND p_caller.id <> ALL (v_key.ancestors || v_key.id) THEN
    PERFORM refuse('not_found',
      'The calling key can change itself and the keys that it created, directly or through other keys. This is another key of the account.');
  ELSIF v_key.playground_of IS NOT NULL THEN
    PERFORM refuse('invalid_argument', 'must not be the key of a playground, which only its page renews', '{"field":"key_id"}');
  ELSIF v_key.revoked_at IS NOT NULL THEN
    PERFORM refuse('invalid_argument', 'must be an active key, and this one was revoked', '{"field":"key_id"}');
  ELSIF v_key.expires_at <= clock_timestamp() THEN
    PERFORM refuse('invalid_argument', 'must be an active key, and this one has expired', '{"field":"key_id"}');
  END IF;
  RETURN v_key;
END
$$;

-- Locks a key, if the proven caller may know of it: a key of the caller's account, for an operator any key. A member needs a role
-- that covers the scopes of the key.
CREATE OR REPLACE FUNCTION key_in_reach(p_caller caller, p_lane smallint, p_id text) RETURNS keys
  LANGUAGE plpgsql
AS $$
DECLARE
  v_key keys;
BEGIN
  SELECT * INTO v_key FROM keys k WHERE k.lane = p_lane AND k.id = p_id
    AND (actor_kind(p_caller) = 'operator' OR k.account_id = p_caller.account_id) FOR NO KEY UPDATE;
  IF NOT FOUND THEN
    PERFORM refuse('not_found', 'There is no such key.');
  ELSIF p_caller.kind = 'member' AND v_key.scopes & ~p_caller.covered_scopes <> 0 THEN
    PERFORM refuse('insufficient_role', format('The key has the scope "%s", which your role does not cover. Ask an owner.',
      names_of_scopes(v_key.scopes & ~p_caller.covered_scopes)));
  END IF;
  RETURN v_key;
END
$$;

-- Stores the changed fields of a key: those in p_changes, where null means that the field has no value. The caller holds the lock
-- of the account.
CREATE OR REPLACE FUNCTION write_key(p_key keys, p_changes jsonb, p_actor text) RETURNS void
  LANGUAGE plpgsql
AS $$
DECLARE
  v_scopes constant smallint := p_changes ->> 'scopes';
  v_new constant keys := jsonb_populate_record(p_key, p_changes);
BEGIN
  IF p_changes ? 'rate_limit_rpm' AND p_actor <> 'operator' THEN
    PERFORM check_rpm(p_key, v_new.rate_limit_rpm, require_plan(p_key.plan));
  END IF;
  IF v_scopes & ~p_key.scopes <> 0 THEN
    PERFORM refuse('invalid_argument', format('must be among the scopes that the key has: %s', names_of_scopes(p_key.scopes)),
      '{"field":"scopes"}');
  ELSIF p_changes ? 'expires_at' AND v_new.expires_at <= clock_timestamp() THEN
    PERFORM refuse('invalid_argument', 'must be in the future', '{"field":"expires_at"}');
  END IF;
  UPDATE keys SET name = v_new.name, scopes = v_new.scopes,
      scopes_reduced_at = CASE WHEN v_new.scopes <> p_key.scopes THEN clock_timestamp() ELSE scopes_reduced_at END, expires_at = v_new.expires_at, rate_limit_rpm = v_new.rate_limit_rpm,
      models = v_new.models, allowed_cidrs = v_new.allowed_cidrs,
      warned_days = CASE WHEN p_changes ? 'expires_at' THEN days_warned(clock_timestamp(), v_new.expires_at)
                         ELSE warned_days END,
      may_exceed_plan = (may_exceed_plan OR p_changes ? 'rate_limit_rpm' AND p_actor = 'operator') AND v_new.rate_limit_rpm IS NOT NULL
    WHERE lane = p_key.lane AND fingerprint = p_key.fingerprint;
  IF p_changes ? 'limits' THEN
    PERFORM set_limits(p_key.lane, p_key.account_id, p_key.id, coalesce(p_changes ->> 'limits', '[]'), true, p_actor);
  END IF;
  PERFORM write_key_event(v_new, 'key.updated',
    jsonb_build_object('fields', (SELECT jsonb_agg(f ORDER BY f) FROM jsonb_object_keys(p_changes) f)));
END
$$;

-- Refuses limits of a key that lack one that it has. p_limits is as in set_limits.
CREATE OR REPLACE FUNCTION check_limits_kept(p_key keys, p_limits json) RETURNS void
  LANGUAGE plpgsql
AS $$
DECLARE
  v_missing limits;
BEGIN
  SELECT l.* INTO v_missing FROM limits l
    WHERE l.lane = p_key.lane AND l.owner_id = p_key.id AND NOT EXISTS (
      SELECT 1 FROM json_populate_recordset(NULL::limits, coalesce(nullif(p_limits::text, 'null'), '[]')::json) n
      WHERE (n.metric, n.period, n.model, n.per_user) = (l.metric, l.period, l.model, l.per_user))
    ORDER BY l.id LIMIT 1;
  PERFORM refuse('invalid_argument',
    format('must contain %s: a key can add limits to itself and lower them, but not remove them', v_missing.id),
    '{"field":"limits"}') WHERE FOUND;
END
$$;

-- Sets the limit of a key, or removes it. A limit set here may exceed that of the plan.
-- null: p_rate_limit_rpm
CREATE OR REPLACE FUNCTION set_key_limit(p_caller caller, p_lane smallint, p_id text, p_rate_limit_rpm integer)
  RETURNS SETOF key_view
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_proven constant keys := prove(p_caller, p_lane);
  v_key constant keys := key_in_reach(p_caller, p_lane, p_id);
BEGIN
  PERFORM require_open_account(p_lane, v_key.account_id);
  UPDATE keys SET rate_limit_rpm = p_rate_limit_rpm, may_exceed_plan = p_rate_limit_rpm IS NOT NULL WHERE lane = p_lane AND id = p_id;
  PERFORM log_change(p_caller, p_lane, p_id, v_key.account_id);
  RETURN QUERY SELECT * FROM keys_by_id(p_lane, ARRAY[p_id]);
END
$$;

-- Gives a key a new secret.
CREATE OR REPLACE FUNCTION rotate_key(
  p_caller caller, p_lane smallint, p_id text, p_fingerprint bytea, p_visible_start text, p_visible_end text, p_overlap_seconds integer
) RETURNS SETOF key_view
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_proven constant keys := prove(p_caller, p_lane);
  v_key constant keys := key_to_change(p_caller, p_lane, p_id);
BEGIN
  PERFORM replace_secret(v_key, p_fingerprint, p_visible_start, p_visible_end, p_overlap_seconds);
  PERFORM log_change(p_caller, p_lane, p_id, v_key.account_id);
  RETURN QUERY SELECT * FROM keys_by_id(p_lane, ARRAY[p_id]);
END
$$;

-- Gives a key a new secret. Its present one works for p_overlap_seconds more, and the one before it no longer.
CREATE OR REPLACE FUNCTION replace_secret(
  p_key keys, p_fingerprint bytea, p_visible_start text, p_visible_end text, p_overlap_seconds integer
) RETURNS void
  LANGUAGE plpgsql
AS $$
DECLARE
  v_until constant timestamptz := clock_timestamp() + make_interval(secs => p_overlap_seconds);
BEGIN
  DELETE FROM previous_secrets WHERE lane = p_key.lane AND key_id = p_key.id;
  INSERT INTO previous_secrets (lane, fingerprint, key_id, visible_start, visible_end, expires_at)
    VALUES (p_key.lane, p_key.fingerprint, p_key.id, p_key.visible_start, p_key.visible_end,
            v_until);
  UPDATE keys SET fingerprint = p_fingerprint, visible_start = p_visible_start, visible_end = p_visible_end
    WHERE lane = p_key.lane AND fingerprint = p_key.fingerprint;
  PERFORM write_key_event(p_key, 'key.rotated', jsonb_build_object('previous_expires_at', v_until));
END
$$;

-- Revokes a key permanently. Each key may revoke itself. With the scope "keys", it may also revoke the keys of its account whose
-- scopes are among its own. A repetition keeps the time of the first revocation.
CREATE OR REPLACE FUNCTION revoke_key(p_caller caller, p_lane smallint, p_id text) RETURNS SETOF key_view
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_own constant keys := prove(p_caller, p_lane);
  c_keys constant smallint := 4;
  v_key keys;
BEGIN
  PERFORM refuse('insufficient_scope', 'Without the scope "keys", an API key can revoke only itself.', '{"scope":"keys"}')
    WHERE p_id <> v_own.id AND v_own.scopes & c_keys = 0;
  v_key := key_in_reach(p_caller, p_lane, p_id);
  PERFORM refuse('not_found', 'There is no such key.') WHERE v_key.scopes & ~v_own.scopes <> 0;
  IF v_key.revoked_at IS NULL THEN
    UPDATE keys SET revoked_at = clock_timestamp() WHERE lane = p_lane AND id = p_id;
    PERFORM write_key_event(v_key, 'key.revoked', jsonb_build_object('by', actor_kind(p_caller)));
    PERFORM log_change(p_caller, p_lane, p_id, v_key.account_id);
  END IF;
  RETURN QUERY SELECT * FROM keys_by_id(p_lane, ARRAY[p_id]);
END
$$;

-- Revokes the key of a member's playground, because the role that permits it ends. The caller holds the lane.
CREATE OR REPLACE FUNCTION revoke_playground_key(p_lane smallint, p_account_id text, p_person_id text) RETURNS void
  LANGUAGE sql
AS $$
  UPDATE keys k SET revoked_at = clock_timestamp()
    WHERE k.lane = p_lane AND k.account_id = p_account_id AND k.playground_of = p_person_id AND k.revoked_at IS NULL
$$;

-- Revokes the keys of leaked secrets (JSON: fingerprint, reason), with all keys that they created. A secret that was rotated
-- counts while it works, and its key is returned afterwards too. A report that revokes nothing is not logged, so repetitions do
-- not fill the log.
CREATE OR REPLACE FUNCTION report_leaks(p_caller caller, p_lane smallint, p_leaks text)
  RETURNS TABLE (fingerprint text, key_id text, account_id text, revoked_keys integer)
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_proven constant keys := prove(p_caller, p_lane);
  v_caller caller := p_caller;
  v_leak json;
  v_secret bytea;
  v_works boolean;
  v_revoked text[];
  v_all_revoked text[];
  -- The reasons of leaks that revoked keys, and the leaked keys.
  v_reasons text[];
  v_leaked text[];
  v_row record;
BEGIN
  FOR v_leak IN SELECT json_array_elements(p_leaks::json) LOOP
    fingerprint := v_leak ->> 'fingerprint';
    v_secret := decode(fingerprint, 'hex');
    SELECT k.id, k.account_id, true INTO key_id, account_id, v_works FROM keys k WHERE k.lane = p_lane AND k.fingerprint = v_secret;
    IF NOT FOUND THEN
      SELECT k.id, k.account_id, s.expires_at > clock_timestamp() INTO key_id, account_id, v_works
        FROM previous_secrets s JOIN keys k ON k.lane = s.lane AND k.id = s.key_id
        WHERE s.lane = p_lane AND s.fingerprint = v_secret;
      CONTINUE WHEN NOT FOUND;
    END IF;
    WITH revoked AS (
      UPDATE keys k SET revoked_at = clock_timestamp()
      WHERE k.lane = p_lane AND k.account_id = report_leaks.account_id AND key_id = ANY (k.ancestors || k.id)
        AND k.revoked_at IS NULL AND v_works
      RETURNING k.id
    )
    SELECT array_agg(r.id ORDER BY r.id) INTO v_revoked FROM revoked r;
    revoked_keys := coalesce(cardinality(v_revoked), 0);
    v_all_revoked := v_all_revoked || v_revoked;
    IF revoked_keys > 0 THEN
      v_reasons := array_append(v_reasons, v_leak ->> 'reason');
      v_leaked := array_append(v_leaked, key_id);
    END IF;
    RETURN NEXT;
  END LOOP;
  -- After all keys, because other transactions lock a key before the events of its account and the operator log.
  PERFORM write_key_event(k, 'key.revoked', '{"by":"leak_report"}')
    FROM unnest(v_all_revoked) r (id) JOIN keys k ON k.lane = p_lane AND k.id = r.id;
  FOR v_row IN SELECT l.reason, k.id, k.account_id FROM unnest(v_reasons, v_leaked) l (reason, key_id)
    JOIN keys k ON k.lane = p_lane AND k.id = l.key_id
  LOOP
    v_caller.reason := v_row.reason;
    PERFORM log_change(v_caller, p_lane, v_row.id, v_row.account_id);
  END LOOP;
END
$$;

-- The keys that lost the right to generate within the last p_seconds, and why: their running streams are cut. A rotation cuts
-- none.
-- reason: revoked_api_key | insufficient_scope | account_suspended
CREATE OR REPLACE FUNCTION withdrawn_keys(p_seconds integer) RETURNS TABLE (key_id text, reason text)
  LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  c_generate constant smallint := 1;
  v_since constant timestamptz := clock_timestamp() - make_interval(secs => p_seconds);
BEGIN
  RETURN QUERY
  SELECT k.id, 'revoked_api_key' FROM keys k WHERE k.revoked_at > v_since
  UNION ALL
  SELECT k.id, 'insufficient_scope' FROM keys k WHERE k.scopes_reduced_at > v_since AND k.scopes & c_generate = 0
  UNION ALL
  SELECT k.id, 'account_suspended' FROM accounts a JOIN keys k ON k.lane = a.lane AND k.account_id = a.id AND k.revoked_at IS NULL
    WHERE a.suspended_at > v_since;
END
$$;

-- Keys that expire within 7 days or a day and whose event key.expiring is not written yet.
CREATE OR REPLACE FUNCTION expiring_keys(p_limit integer) RETURNS TABLE (lane smallint, id text)
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT
AS $$
  SELECT k.lane, k.id FROM keys k
    WHERE k.revoked_at IS NULL AND k.expires_at > statement_timestamp() AND k.expires_at <= statement_timestamp() + interval '7 days'
      AND days_warned(statement_timestamp(), k.expires_at) IS DISTINCT FROM k.warned_days
      AND NOT EXISTS (SELECT 1 FROM lanes l WHERE l.lane = k.lane AND NOT l.is_owned)
    ORDER BY k.expires_at LIMIT p_limit
$$;

-- Writes the event key.expiring that is due for a key, once.
CREATE OR REPLACE FUNCTION warn_of_expiry(p_lane smallint, p_id text) RETURNS void
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_now constant timestamptz := clock_timestamp();
BEGIN
  PERFORM require_lane(p_lane);
  PERFORM lock_account(p_lane, k.account_id) FROM keys k WHERE k.lane = p_lane AND k.id = p_id;
  UPDATE keys k SET warned_days = days_warned(v_now, k.expires_at)
    WHERE k.lane = p_lane AND k.id = p_id AND k.revoked_at IS NULL AND k.expires_at > v_now
      AND days_warned(v_now, k.expires_at) IS DISTINCT FROM k.warned_days;
  IF FOUND THEN
    PERFORM write_key_event(k, 'key.expiring',
        jsonb_build_object('expires_at', k.expires_at, 'days', k.warned_days))
      FROM keys k WHERE k.lane = p_lane AND k.id = p_id;
  END IF;
END
$$;

-- The events key.expiring that a new expiry is too near for: 7 if it is within 7 days, 1 if it is within a day, or NULL.
CREATE OR REPLACE FUNCTION days_warned(p_now timestamptz, p_expires_at timestamptz) RETURNS smallint
  LANGUAGE sql STABLE
  RETURN CASE WHEN p_expires_at <= p_now + interval '1 day' THEN 1 WHEN p_expires_at <= p_now + interval '7 days' THEN 7 END::smallint;

-- Writes an event about a key, unless it is that of a playground. p_data is what its type adds to the key.
CREATE OR REPLACE FUNCTION write_key_event(p_key keys, p_type text, p_data jsonb) RETURNS void
  LANGUAGE plpgsql
AS $$
BEGIN
  IF p_key.playground_of IS NULL THEN
    PERFORM write_event(p_key.lane, p_key.account_id, p_type, jsonb_build_object('key_id', p_key.id, 'name', p_key.name) || p_data);
  END IF;
END
$$;
