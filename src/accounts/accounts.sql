-- Accounts: creating, finding and listing them, and what operators change.

-- Creates an account with an empty balance. p_profile is a JSON object of columns of its profile.
CREATE OR REPLACE FUNCTION create_account(
  p_caller caller, p_lane smallint, p_id text, p_name text, p_plan text, p_profile text DEFAULT '{}'
) RETURNS SETOF account_views
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
BEGIN
  PERFORM prove(p_caller, p_lane);
  PERFORM require_plan(p_plan);
  IF p_lane <> lane_of(p_id) THEN
    RAISE EXCEPTION 'the lane of an account is not that of its id' USING ERRCODE = 'check_violation';
  END IF;
  INSERT INTO accounts (lane, id, name, plan, created_at)
    VALUES (p_lane, p_id, p_name, p_plan, clock_timestamp());
  PERFORM put_profile(p_lane, p_id, p_profile::jsonb);
  PERFORM log_change(p_caller, p_lane, p_id, p_id);
  RETURN QUERY SELECT * FROM get_account(p_lane, p_id);
END
$$;

-- Sets the columns of an account's profile that p_given has.
CREATE OR REPLACE FUNCTION put_profile(p_lane smallint, p_id text, p_given jsonb) RETURNS void
  LANGUAGE plpgsql
AS $$
BEGIN
  INSERT INTO account_profiles SELECT n.* FROM jsonb_populate_record(coalesce(
      (SELECT p FROM account_profiles p WHERE p.lane = p_lane AND p.account_id = p_id),
      ROW(p_lane, p_id, NULL, '', '')::account_profiles), p_given) n
    WHERE p_given ?| '{external_id,email,notes}'
    ON CONFLICT ON CONSTRAINT account_profiles_pkey DO UPDATE
      SET external_id = excluded.external_id, email = excluded.email, notes = excluded.notes;
EXCEPTION WHEN unique_violation THEN
  PERFORM refuse('invalid_argument', 'is the external id of another account', '{"field":"external_id"}');
END
$$;

-- Creates an account with a credit and a key, all or nothing, if the database has no account; several servers may start at once.
-- Each of the three is logged as an event of the server. p_owner_id becomes its owner, unless it is NULL. Returns whether this
-- call did.
-- null: p_owner_id, p_owner_issuer, p_owner_subject, p_owner_email
CREATE OR REPLACE FUNCTION create_first_account(
  p_caller caller, p_lane smallint, p_id text, p_name text, p_plan text, p_entry_id text, p_month integer, p_amount_micros bigint,
  p_reason text, p_key_id text, p_fingerprint bytea, p_scopes smallint, p_visible_start text, p_visible_end text,
  p_owner_id text, p_owner_issuer text, p_owner_subject text, p_owner_email text
) RETURNS TABLE (created boolean)
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_caller caller := p_caller;
BEGIN
  LOCK TABLE accounts IN SHARE ROW EXCLUSIVE MODE;
  PERFORM prove(p_caller, p_lane);
  created := NOT EXISTS (SELECT 1 FROM accounts);
  IF created THEN
    v_caller.method := 'CreateAccount';
    PERFORM create_account(v_caller, p_lane, p_id, p_name, p_plan);
    v_caller.method := 'CreditAccount';
    PERFORM move_balance(v_caller, p_lane, p_id, p_entry_id, p_month, 'credit', p_amount_micros, p_reason, p_reason);
    v_caller.method := 'CreateKey';
    PERFORM create_key(v_caller, p_lane, p_id, jsonb_build_object('id', p_key_id, 'fingerprint', p_fingerprint, 'name', p_name,
      'plan', p_plan, 'scopes', p_scopes, 'visible_start', p_visible_start, 'visible_end', p_visible_end)::text, p_scopes);
    IF p_owner_id IS NOT NULL THEN
      INSERT INTO people (id, issuer, subject, email, created_at, signed_in_at, account_id)
        VALUES (p_owner_id, p_owner_issuer, p_owner_subject, p_owner_email, clock_timestamp(), clock_timestamp(), p_id);
      INSERT INTO person_accounts (person_id, account_id, link_id) VALUES (p_owner_id, p_id, 'sign-up');
      PERFORM add_member(p_lane, p_id, p_owner_id, p_owner_email, 'owner', 'sign-up');
    END IF;
  END IF;
  RETURN NEXT;
END
$$;

-- The account with this id.
CREATE OR REPLACE FUNCTION get_account(p_lane smallint, p_id text) RETURNS SETOF account_views
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT
AS $$
  SELECT a.* FROM account_views a WHERE a.lane = p_lane AND a.id = p_id
$$;

-- The account with this id, or the account that owns the key, ledger entry, top-up, webhook, event or failed call with this id.
-- p_month is the month of the ledger entry.
CREATE OR REPLACE FUNCTION account_with(p_lane smallint, p_id text, p_month integer) RETURNS SETOF account_views
  LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT
  SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
  v_account_id text := p_id;
BEGIN
  CASE substring(p_id FROM '^([a-z]+)_')
    WHEN 'key' THEN
      SELECT k.account_id INTO v_account_id FROM keys k WHERE k.lane = p_lane AND k.id = p_id;
    WHEN 'led' THEN
      SELECT l.account_id INTO v_account_id FROM ledger l WHERE l.lane = p_lane AND l.id = p_id AND l.month = p_month;
    WHEN 'top' THEN
      SELECT t.account_id INTO v_account_id FROM topups t WHERE t.lane = p_lane AND t.id = p_id;
    WHEN 'wh' THEN
      SELECT w.account_id INTO v_account_id FROM webhooks w WHERE w.lane = p_lane AND w.id = p_id;
    WHEN 'evt' THEN
      SELECT e.account_id INTO v_account_id FROM events e WHERE e.lane = p_lane AND e.id = p_id;
    WHEN 'fail' THEN
      -- By the accounts of the lane: failed calls have no index by their ids alone.
      SELECT f.account_id INTO v_account_id FROM accounts a
      JOIN failures f ON f.lane = a.lane AND f.account_id = a.id AND f.id = p_id WHERE a.lane = p_lane;
    ELSE
      NULL;
  END CASE;
  RETURN QUERY SELECT a.* FROM account_views a WHERE a.lane = p_lane AND a.id = v_account_id;
END
$$;

-- The accounts with this external id, or else, if p_with_names, at most two accounts with this name. Old rows of lanes that
-- another cell owns do not count.
CREATE OR REPLACE FUNCTION find_accounts(p_reference text, p_with_names boolean) RETURNS SETOF account_views
  LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT
AS $$
BEGIN
  RETURN QUERY
    SELECT a.* FROM account_views a JOIN account_profiles p ON p.lane = a.lane AND p.account_id = a.id
    WHERE p.external_id = p_reference AND NOT EXISTS (SELECT 1 FROM lanes l WHERE l.lane = a.lane AND NOT l.is_owned);
  IF NOT FOUND AND p_with_names THEN
    RETURN QUERY
      SELECT a.* FROM account_views a
      WHERE lower(a.name) COLLATE "C" = lower(p_reference) AND a.name = p_reference
        AND NOT EXISTS (SELECT 1 FROM lanes l WHERE l.lane = a.lane AND NOT l.is_owned) LIMIT 2;
  END IF;
END
$$;

-- The names of accounts, and of keys and operators, whose ids are lists in JSON. Ids that do not exist have none.
CREATE OR REPLACE FUNCTION names_of(p_account_ids text, p_key_ids text) RETURNS TABLE (id text, name text)
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT
  SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
  SELECT a.id, a.name FROM json_array_elements_text(p_account_ids::json) AS i (id) JOIN accounts a ON a.lane = lane_of(i.id) AND a.id = i.id
  UNION ALL
  SELECT k.id, k.name FROM json_array_elements_text(p_key_ids::json) AS i (id) JOIN keys k ON k.lane = lane_of(i.id) AND k.id = i.id
  UNION ALL
  SELECT o.id, o.name FROM json_array_elements_text(p_key_ids::json) AS i (id) JOIN operators o ON o.id = i.id
$$;

-- A page of accounts, newest first. An empty p_before means the first page.
-- The settings keep deep pages on index scans regardless of the plan that PostgreSQL caches.
CREATE OR REPLACE FUNCTION list_accounts(p_before text, p_limit integer) RETURNS SETOF account_views
  LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT
  SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off
AS $$
BEGIN
  -- Statements of their own, because no text is greater than every id in every collation.
  IF p_before = '' THEN
    RETURN QUERY SELECT * FROM account_views ORDER BY id DESC LIMIT p_limit;
  ELSE
    RETURN QUERY SELECT * FROM account_views WHERE id < p_before ORDER BY id DESC LIMIT p_limit;
  END IF;
END
$$;

-- The accounts with a state, or all if it is empty, in an order: newest, name, or one of the figures; spent_today and spent_month
-- have only accounts that spent something. Those after (p_after, p_after_id), at most p_limit; an empty p_after_id means from the
-- start.
-- null: p_below
CREATE OR REPLACE FUNCTION sort_accounts(
  p_sort text, p_state text, p_below bigint, p_after text, p_after_id text, p_limit integer
) RETURNS SETOF found_accounts
  LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT
  SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
DECLARE
  v_is_ascending constant boolean := p_sort IN ('name', 'lowest_balance');
  v_is_of_figures constant boolean := p_sort NOT IN ('newest', 'name');
  v_states constant text[] := CASE WHEN p_state <> '' OR NOT v_is_of_figures THEN ARRAY[p_state]
    ELSE ARRAY['active', 'suspended', 'closed'] END;
  v_term constant text := CASE p_sort WHEN 'newest' THEN '''''' WHEN 'name' THEN 'lower(i.name) COLLATE "C"'
    WHEN 'spent_today' THEN 'i.day_micros' WHEN 'spent_month' THEN 'i.month_micros' ELSE 'i.balance_micros' END;
  v_column constant text := CASE WHEN v_is_of_figures THEN 'i.account_id' ELSE 'i.id' END;
  v_id constant text := v_column || ' COLLATE "C"';
  v_place constant text := CASE p_sort WHEN 'newest' THEN v_id ELSE format('(%s, %s)', v_term, v_id) END;
  v_direction constant text := CASE WHEN v_is_ascending THEN 'ASC' ELSE 'DESC' END;
  v_conditions text := CASE
    WHEN p_sort = 'spent_today' THEN 'i.state = s.state AND i.day_micros > 0 AND i.day = (SELECT t.day FROM day_and_month(now()) t)'
    WHEN p_sort = 'spent_month' THEN 'i.state = s.state AND i.month_micros > 0 AND i.month = (SELECT t.month FROM day_and_month(now()) t)'
    WHEN v_is_of_figures THEN 'i.state = s.state AND ($4 IS NULL OR i.balance_micros < $4)'
    WHEN p_state = '' THEN 'true'
    WHEN p_state = 'active' THEN 'i.suspended_at IS NULL'
    WHEN p_state = 'suspended' THEN 'i.suspended_at IS NOT NULL AND i.closed_at IS NULL'
    ELSE 'i.suspended_at IS NOT NULL AND i.closed_at IS NOT NULL' END;
BEGIN
  IF p_after_id <> '' THEN
    v_conditions := v_conditions || format(' AND %s %s %s', v_place, CASE WHEN v_is_ascending THEN '>' ELSE '<' END, CASE
      WHEN p_sort = 'newest' THEN '$3' WHEN p_sort = 'name' THEN '($2, $3)' ELSE '($2::bigint, $3)' END);
  END IF;
  RETURN QUERY EXECUTE format($query$
    SELECT f.term::text, true, false, a.*
    FROM (
      SELECT o.* FROM unnest($1) s (state)
      CROSS JOIN LATERAL (
        -- Without the collation, which the primary keys do not have.
        SELECT %1$s AS term, i.lane, %7$s AS account_id FROM %3$s i
        WHERE %4$s ORDER BY %5$s %2$s %6$s LIMIT $5
      ) o
      ORDER BY o.term %6$s, o.account_id COLLATE "C" %6$s LIMIT $5
    ) f
    JOIN account_views a ON a.lane = f.lane AND a.id = f.account_id
    ORDER BY f.term %6$s, f.account_id COLLATE "C" %6$s
  $query$, v_term, v_id, CASE WHEN v_is_of_figures THEN 'account_figures' ELSE 'accounts' END, v_conditions,
    CASE p_sort WHEN 'newest' THEN '' ELSE format('%s %s,', v_term, v_direction) END, v_direction,
    v_column)
    USING v_states, p_after, p_after_id, p_below, p_limit;
END
$$;

-- Brings the figures of the accounts of some lanes up to date. It writes only those that changed. The charges of the days before
-- today are read once a day.
CREATE OR REPLACE FUNCTION refresh_figures(p_first smallint, p_last smallint) RETURNS void
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
  SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
DECLARE
  c_quarters constant integer := 96;
  v_now constant timestamptz := clock_timestamp();
  v_day integer;
  v_month integer;
  v_first_quarter constant integer := floor(extract(epoch FROM date_trunc('month', v_now, 'UTC')) / 900);
BEGIN
  SELECT t.day, t.month INTO v_day, v_month FROM day_and_month(v_now) t;
  INSERT INTO account_figures AS f (lane, account_id, state, balance_micros, day, day_micros, month, month_micros, last_seq)
  SELECT a.lane, a.id, s.state, a.balance_micros, v_day, d.micros, v_month, d.micros + e.micros, a.last_seq
  FROM accounts a
  LEFT JOIN account_figures o ON o.lane = a.lane AND o.account_id = a.id
  CROSS JOIN LATERAL (
    SELECT CASE WHEN a.closed_at IS NOT NULL THEN 'closed' WHEN a.suspended_at IS NOT NULL THEN 'suspended' ELSE 'active' END
  ) s (state)
  CROSS JOIN LATERAL (
    SELECT coalesce(sum(u.cost_micros), 0)::bigint FROM usage_quarters u
    WHERE u.lane = a.lane AND u.account_id = a.id AND u.quarter >= v_day * c_quarters AND u.quarter < (v_day + 1) * c_quarters
  ) d (micros)
  CROSS JOIN LATERAL (
    SELECT CASE WHEN o.day = v_day THEN o.month_micros - o.day_micros ELSE (
      SELECT coalesce(sum(u.cost_micros), 0)::bigint FROM usage_quarters u
      WHERE u.lane = a.lane AND u.account_id = a.id AND u.quarter >= v_first_quarter AND u.quarter < v_day * c_quarters) END
  ) e (micros)
  WHERE a.lane BETWEEN p_first AND p_last AND NOT EXISTS (SELECT 1 FROM lanes l WHERE l.lane = a.lane AND NOT l.is_owned)
    AND (o.last_seq IS DISTINCT FROM a.last_seq OR o.state <> s.state)
  ORDER BY a.lane, a.id
  ON CONFLICT ON CONSTRAINT account_figures_pkey DO UPDATE SET state = excluded.state, balance_micros = excluded.balance_micros,
    day = excluded.day, day_micros = excluded.day_micros, month = excluded.month, month_micros = excluded.month_micros,
    last_seq = excluded.last_seq;
END
$$;

-- The accounts of which a field starts with a text, in upper or lower case: those after (p_after, p_after_id) in the order of
-- the field and the id, at most p_limit; an empty p_after_id means from the start. p_field is external_id, email or name.
-- was_found: the text is the id of the account, or starts a field that is searched before this one.
CREATE OR REPLACE FUNCTION search_accounts(p_field text, p_search text, p_after text, p_after_id text, p_limit integer)
  RETURNS SETOF found_accounts
  LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT
  SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off
  SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
DECLARE
  v_search constant text := lower(p_search);
  v_after constant text := CASE WHEN p_after_id = '' THEN v_search ELSE p_after END;
BEGIN
  RETURN QUERY
  WITH found AS (
    (SELECT lower(p.external_id) COLLATE "C" AS term, p.lane, p.account_id FROM account_profiles p
     WHERE p_field = 'external_id' AND p.external_id IS NOT NULL
       AND (lower(p.external_id) COLLATE "C", p.account_id COLLATE "C") > (v_after, p_after_id)
     ORDER BY lower(p.external_id) COLLATE "C", p.account_id COLLATE "C" LIMIT p_limit)
    UNION ALL
    (SELECT lower(p.email) COLLATE "C", p.lane, p.account_id FROM account_profiles p
     WHERE p_field = 'email' AND p.email <> ''
       AND (lower(p.email) COLLATE "C", p.account_id COLLATE "C") > (v_after, p_after_id)
     ORDER BY lower(p.email) COLLATE "C", p.account_id COLLATE "C" LIMIT p_limit)
    UNION ALL
    (SELECT lower(a.name) COLLATE "C", a.lane, a.id FROM accounts a
     WHERE p_field = 'name' AND (lower(a.name) COLLATE "C", a.id COLLATE "C") > (v_after, p_after_id)
     ORDER BY lower(a.name) COLLATE "C", a.id COLLATE "C" LIMIT p_limit)
  ), page AS MATERIALIZED (
    -- The texts that start with the search follow each other, so the first other text ends them.
    SELECT f.*, row_number() OVER () AS number FROM found f WHERE starts_with(f.term, v_search)
  )
  SELECT p.term::text, true, a.id = p_search OR (p_field <> 'external_id' AND starts_with(lower(a.external_id), v_search))
           OR (p_field = 'name' AND starts_with(lower(a.email), v_search)), a.*
  FROM page p JOIN account_views a ON a.lane = p.lane AND a.id = p.account_id ORDER BY p.number;
END
$$;

-- As search_accounts, for names that contain the text after their start, among the next p_rows accounts. If it reads so many, the
-- last one is returned too, with is_match = false if it does not match, so that the caller can continue after it.
CREATE OR REPLACE FUNCTION search_names(p_search text, p_after text, p_after_id text, p_rows integer, p_limit integer)
  RETURNS SETOF found_accounts
  LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT
  SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off
  SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
DECLARE
  v_search constant text := lower(p_search);
BEGIN
  RETURN QUERY
  WITH page AS MATERIALIZED (
    SELECT r.term, r.lane, r.account_id, strpos(r.term, v_search) > 1 AS is_match, r.number
    FROM (
      SELECT n.*, row_number() OVER () AS number FROM (
        SELECT lower(a.name) COLLATE "C" AS term, a.lane, a.id AS account_id FROM accounts a
        WHERE (lower(a.name) COLLATE "C", a.id COLLATE "C") > (p_after, p_after_id)
        ORDER BY lower(a.name) COLLATE "C", a.id COLLATE "C" LIMIT p_rows
      ) n
    ) r WHERE strpos(r.term, v_search) > 1 OR r.number = p_rows LIMIT p_limit
  )
  SELECT p.term::text, p.is_match, a.id = p_search OR starts_with(lower(a.external_id), v_search) IS TRUE
           OR starts_with(lower(a.email), v_search) IS TRUE, a.*
  FROM page p JOIN account_views a ON a.lane = p.lane AND a.id = p.account_id ORDER BY p.number;
END
$$;

-- Changes the columns of an account and of its profile that p_changes has: name, low_balance_micros, external_id, email, notes.
CREATE OR REPLACE FUNCTION update_account(p_caller caller, p_lane smallint, p_id text, p_changes text) RETURNS SETOF account_views
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_proven constant keys := prove(p_caller, p_lane);
  v_new constant accounts := jsonb_populate_record(require_open_account(p_lane, p_id), p_changes::jsonb);
BEGIN
  UPDATE accounts SET name = v_new.name, low_balance_micros = v_new.low_balance_micros WHERE lane = p_lane AND id = p_id;
  PERFORM put_profile(p_lane, p_id, p_changes::jsonb);
  PERFORM log_change(p_caller, p_lane, p_id, p_id);
  RETURN QUERY SELECT * FROM get_account(p_lane, p_id);
END
$$;

-- Changes the plan of an account. Its keys on the former plan follow; keys on another plan keep theirs. Counters of the former
-- plan count no entries from now on, and those of the new plan count them again.
CREATE OR REPLACE FUNCTION set_account_plan(p_caller caller, p_lane smallint, p_id text, p_plan text) RETURNS SETOF account_views
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_proven constant keys := prove(p_caller, p_lane);
  v_account constant accounts := require_open_account(p_lane, p_id);
  v_plan constant plans := require_plan(p_plan);
  v_from_now_on constant int8multirange := int8multirange(int8range(v_account.last_seq + 1, NULL));
  v_moved text[];
BEGIN
  WITH moved AS (
    UPDATE keys SET plan = p_plan
    WHERE lane = p_lane AND account_id = p_id AND plan = v_account.plan AND plan <> p_plan AND revoked_at IS NULL
    RETURNING id
  )
  SELECT array_agg(m.id) INTO v_moved FROM moved m;
  IF v_moved IS NOT NULL THEN
    PERFORM check_key_cap(p_lane, p_id, v_plan);
    UPDATE limit_counters c
      SET uncounted = CASE c.plan WHEN p_plan THEN c.uncounted - v_from_now_on ELSE c.uncounted + v_from_now_on END
      WHERE c.lane = p_lane AND c.account_id = p_id AND c.subject_id = ANY (v_moved) AND c.plan IN (v_account.plan, p_plan)
        AND c.user_id = '';
  END IF;
  UPDATE accounts SET plan = p_plan WHERE lane = p_lane AND id = p_id;
  PERFORM log_change(p_caller, p_lane, p_id, p_id);
  RETURN QUERY SELECT * FROM get_account(p_lane, p_id);
END
$$;

-- Suspends an account, so that admission refuses its calls, or resumes it. A repetition keeps the time of the suspension.
CREATE OR REPLACE FUNCTION set_account_suspended(p_caller caller, p_lane smallint, p_id text, p_suspended boolean)
  RETURNS SETOF account_views
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
BEGIN
  PERFORM prove(p_caller, p_lane);
  PERFORM require_open_account(p_lane, p_id);
  UPDATE accounts SET suspended_at = CASE WHEN p_suspended THEN clock_timestamp() END
    WHERE lane = p_lane AND id = p_id AND (suspended_at IS NOT NULL) <> p_suspended;
  IF FOUND THEN
    PERFORM write_event(p_lane, p_id, CASE WHEN p_suspended THEN 'account.suspended' ELSE 'account.resumed' END, '{}');
    PERFORM log_change(p_caller, p_lane, p_id, p_id);
  END IF;
  RETURN QUERY SELECT * FROM get_account(p_lane, p_id);
END
$$;

-- The account, for a change that a closed account does not allow. The caller holds the lane.
CREATE OR REPLACE FUNCTION require_open_account(p_lane smallint, p_id text) RETURNS accounts
  LANGUAGE plpgsql
AS $$
DECLARE
  v_account constant accounts := require_account(p_lane, p_id);
BEGIN
  PERFORM refuse('invalid_argument', 'is closed, which is final', '{"field":"account_id"}') WHERE v_account.closed_at IS NOT NULL;
  RETURN v_account;
END
$$;

-- The account with this id; refuses when there is none. The caller holds the lane.
CREATE OR REPLACE FUNCTION require_account(p_lane smallint, p_id text) RETURNS accounts
  LANGUAGE plpgsql
AS $$
DECLARE
  v_account accounts;
BEGIN
  SELECT * INTO v_account FROM accounts a WHERE a.lane = p_lane AND a.id = p_id;
  PERFORM refuse('not_found', 'There is no such account.') WHERE NOT FOUND;
  RETURN v_account;
END
$$;

-- Locks the lane of an account and returns the account. Serialises changes of its balance and of its number of keys.
CREATE OR REPLACE FUNCTION lock_account(p_lane smallint, p_id text) RETURNS accounts
  LANGUAGE plpgsql
AS $$
BEGIN
  PERFORM lock_lane(p_lane);
  RETURN require_account(p_lane, p_id);
END
$$;
