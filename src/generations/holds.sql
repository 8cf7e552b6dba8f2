-- Holds and their settlement: the batches of money. post_entries is the only function that changes balances.

-- One batch of everything that moves money for generations, in p_lanes. Endings come first, so that what they release can be held
-- in the same batch. After p_not_after, the server no longer waits for the result, and the statement must change nothing.
-- null: p_not_after
CREATE OR REPLACE FUNCTION bill(
  p_server_id text, p_not_after timestamptz, p_lanes smallint[], p_ends entry_item[], p_holds hold_item[]
) RETURNS SETOF item_result
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
  -- Plans are made once, possibly while the tables are empty; only index look-ups are fast at every size.
  SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
DECLARE
  v_lanes integer;
  v_plans plans_with_limits;
  v_recent timestamptz;
  v_results item_result[];
BEGIN
  -- In ascending order, so that batches of several servers never deadlock.
  PERFORM 1 FROM lanes l WHERE l.lane = ANY (p_lanes) AND l.is_owned ORDER BY l.lane FOR UPDATE;
  GET DIAGNOSTICS v_lanes = ROW_COUNT;
  IF v_lanes <> cardinality(p_lanes) THEN
    PERFORM raise_lane_moved();
  END IF;
  -- Waiting for the locks may have taken long.
  IF clock_timestamp() > p_not_after THEN
    RETURN NEXT ROW('late', 0, '', NULL, NULL, NULL, clock_timestamp(), NULL)::item_result;
    RETURN;
  END IF;
  v_plans := limited_plans();
  IF cardinality(p_ends) > 0 THEN
    v_results := post_entries(p_ends, v_plans);
    RETURN QUERY SELECT * FROM unnest(v_results);
  END IF;
  IF cardinality(p_holds) > 0 THEN
    -- Holds of a server that is not registered would be released as abandoned. Other servers remove one without a
    -- heartbeat for 20 s, so a registration that is nearly as old is renewed.
    v_recent := clock_timestamp() - interval '10 seconds';
    IF NOT EXISTS (SELECT 1 FROM servers s WHERE s.id = p_server_id AND s.seen_at > v_recent) THEN
      PERFORM heartbeat(p_server_id);
    END IF;
    v_results := place_holds(p_server_id, p_holds, v_plans);
    RETURN QUERY SELECT * FROM unnest(v_results);
  END IF;
END
$$;

-- Places each hold that fits the free balance of its account, in the order given. The caller holds the locks of the lanes.
-- Outcomes: "held"; "insufficient", with the threshold of automatic top-ups, NULL if none can start; "owing", with what is owed;
-- "limited"; "outdated" when the secret, the key or the prices are no longer those that the call was admitted with: the gate
-- admits it again or refuses it; with an idempotency key also "answered", "running" and "reused". The response of "answered" is
-- read with get_answer: many long ones would delay the other items of the batch.
CREATE OR REPLACE FUNCTION place_holds(p_server_id text, p_holds hold_item[], p_plans plans_with_limits) RETURNS item_result[]
  LANGUAGE plpgsql
AS $$
DECLARE
  v_now constant timestamptz := clock_timestamp();
  -- No default: for each call, PostgreSQL would look up the input function of the type to read '{}'.
  v_results item_result[];
  v_placed holds[];
  v_changes held_change[];
  -- The account of the current hold.
  v_account_id text;
  v_account_place tid;
  v_held bigint;
  v_at timestamptz;
  v_check limit_check;
  -- The counters of limits that the batch has changed, and where they are.
  v_counters limit_counter[];
  v_places tid[];
  v_limits call_counters;
  v_n integer;
  v_is_changed boolean;
  -- Idempotency keys of earlier holds of this account in the batch, and the digests of their payloads.
  v_claimed text[];
  v_digests text[];
  -- Whether the first call with the idempotency key has a stored response, or still runs.
  v_answered boolean;
  v_known_digest text;
  v_running boolean;
  v_outcome text;
  r record;
BEGIN
  FOR r IN
    SELECT e.*, a.place AS account_place, a.held_micros,
           -- What has expired cannot be held any more.
           CASE WHEN a.grants_expire_at <= v_now
             THEN greatest(a.held_micros, a.balance_micros - expired_credit(e.lane, e.account_id, v_now)) ELSE a.balance_micros END
             AS balance_micros, a.last_at, a.owed_micros,
           a.auto_topup_below_micros,
           key_state(k.revoked_at, k.expires_at, a.suspended_at, v_now) <> 'active' OR k.scopes IS DISTINCT FROM e.scopes
             OR array_to_string(k.allowed_cidrs, ',') IS DISTINCT FROM e.cidrs OR e.model <> ALL (k.models)
             OR a.price_list_version IS DISTINCT FROM e.price_list_version
             OR k.fingerprint IS DISTINCT FROM e.fingerprint AND NOT EXISTS (
               SELECT FROM previous_secrets s
               WHERE s.lane = e.lane AND s.fingerprint = e.fingerprint AND s.key_id = e.key_id AND s.expires_at > v_now) AS is_outdated,
           k.ancestors, a.is_limited AS account_is_limited, k.is_limited AS key_is_limited, a.limits_version, a.user_salt,
           -- Calls without limits do not pay for the look-up of counters.
           CASE WHEN limits_apply(a.is_limited, k.is_limited, k.plan, k.ancestors, p_plans.names) THEN (
             SELECT ROW(l.places, l.counters, l.are_current)::call_counters
             FROM counters_of_call(e.lane, e.account_id, array_append(k.ancestors, e.key_id), a.is_limited, k.is_limited, p_plans.names,
               p_plans.version, a.limits_version, user_digest(a.user_salt, e.user_id), greatest(v_now, a.last_at)) l) END AS limits
    FROM unnest(p_holds) WITH ORDINALITY
      AS e (lane, account_id, generation_id, key_id, amount, seconds, idempotency_key, digest, model, user_id,
        tokens, fingerprint, scopes, cidrs, price_list_version, n)
    -- Each limit of 1 keeps a look-up by key: a join may be planned as a scan of all holds for each item.
    LEFT JOIN LATERAL (SELECT i.ctid AS place, i.balance_micros, i.held_micros, i.last_at, i.is_limited,
        i.limits_version, i.owed_micros, i.grants_expire_at, i.auto_topup_below_micros, i.user_salt,
        i.suspended_at, i.price_list_version FROM accounts i
      WHERE i.lane = e.lane AND i.id = e.account_id LIMIT 1) a ON true
    LEFT JOIN LATERAL (SELECT i.fingerprint, i.revoked_at, i.expires_at, i.plan, i.scopes, i.models, i.allowed_cidrs, i.ancestors,
        i.is_limited FROM keys i
      WHERE i.lane = e.lane AND i.id = e.key_id LIMIT 1) k ON true
    ORDER BY e.lane, e.account_id, e.n
  LOOP
    IF r.account_id IS DISTINCT FROM v_account_id THEN
      IF r.account_place IS NULL THEN
        RAISE EXCEPTION 'a hold names an account that does not exist';
      END IF;
      IF v_is_changed THEN
        v_changes := array_append(v_changes, ROW(v_account_place, v_held, v_at)::held_change);
      END IF;
      v_account_id := r.account_id;
      v_account_place := r.account_place;
      v_held := r.held_micros;
      v_at := greatest(v_now, r.last_at);
      v_is_changed := false;
      v_claimed := NULL;
      v_digests := NULL;
    END IF;
    v_check := NULL;
    -- Only calls with an idempotency key need this look-up.
    v_answered := false;
    v_running := false;
    IF r.idempotency_key IS NOT NULL THEN
      SELECT x.answer IS NOT NULL, x.digest, x.answer IS NULL AND EXISTS (
          SELECT 1 FROM holds h WHERE h.lane = x.lane AND h.id = x.generation_id)
        INTO v_answered, v_known_digest, v_running FROM answers x
        WHERE x.lane = r.lane AND x.account_id = r.account_id AND x.idempotency_key = r.idempotency_key
          AND x.created_at > v_now - interval '24 hours';
    END IF;
    IF r.is_outdated THEN
      v_outcome := 'outdated';
    ELSIF (v_running OR v_answered) AND v_known_digest <> r.digest THEN
      v_outcome := 'reused';
    ELSIF v_answered THEN
      v_outcome := 'answered';
    ELSIF v_running THEN
      v_outcome := 'running';
    ELSIF r.idempotency_key = ANY (v_claimed) THEN
      v_outcome := CASE WHEN v_digests[array_position(v_claimed, r.idempotency_key)] = r.digest
                        THEN 'running' ELSE 'reused' END;
    ELSIF r.owed_micros > 0 THEN
      v_outcome := 'owing';
    ELSIF r.balance_micros - v_held < r.amount THEN
      v_outcome := 'insufficient';
    ELSE
      v_outcome := 'held';
    END IF;
    IF r.limits IS NOT NULL AND v_outcome IN ('held', 'insufficient') THEN
      v_limits := r.limits;
      IF NOT v_limits.are_current THEN
        v_limits := align_counters(r.lane, r.account_id, ARRAY(
          SELECT n FROM names_of_counters(r.lane, r.account_id, array_append(r.ancestors, r.key_id), r.account_is_limited,
            r.key_is_limited, p_plans.names, user_digest(r.user_salt, r.user_id)) n), r.limits_version, p_plans.version, v_at);
      END IF;
      v_check := check_limits(v_limits.places, v_limits.counters, v_places, v_counters, r.model, r.user_id, r.amount, r.tokens,
        v_outcome = 'insufficient', v_at);
      v_outcome := CASE WHEN v_check.is_refused AND v_outcome = 'held' THEN 'limited' ELSE v_outcome END;
    END IF;
    v_results := array_append(v_results,
      ROW('hold', r.n, v_outcome, r.balance_micros, v_held, CASE v_outcome WHEN 'owing' THEN r.owed_micros
        WHEN 'insufficient' THEN r.auto_topup_below_micros END, NULL, v_check.details)::item_result);
    IF v_outcome = 'held' THEN
      v_held := v_held + r.amount;
      v_is_changed := true;
      v_placed := array_append(v_placed, ROW(r.lane, r.generation_id, r.account_id, p_server_id, r.amount,
        r.idempotency_key, v_now + make_interval(secs => r.seconds), v_check.held)::holds);
      IF v_check.counters IS NOT NULL THEN
        FOR i IN 1..cardinality(v_check.places) LOOP
          v_n := coalesce(array_position(v_places, v_check.places[i]), cardinality(v_places) + 1, 1);
          v_places[v_n] := v_check.places[i];
          v_counters[v_n] := v_check.counters[i];
        END LOOP;
      END IF;
      IF r.idempotency_key IS NOT NULL THEN
        v_claimed := v_claimed || r.idempotency_key;
        v_digests := v_digests || r.digest;
        INSERT INTO answers (lane, account_id, idempotency_key, digest, generation_id, created_at)
          VALUES (r.lane, r.account_id, r.idempotency_key, r.digest, r.generation_id, v_now)
          ON CONFLICT ON CONSTRAINT answers_pkey DO UPDATE
            SET digest = excluded.digest, generation_id = excluded.generation_id, answer = NULL, created_at = excluded.created_at;
      END IF;
    END IF;
  END LOOP;
  IF v_is_changed THEN
    v_changes := array_append(v_changes, ROW(v_account_place, v_held, v_at)::held_change);
  END IF;
  INSERT INTO holds SELECT * FROM unnest(v_placed);
  IF v_counters IS NOT NULL THEN
    PERFORM write_counters(v_places, v_counters);
  END IF;
  UPDATE accounts a SET held_micros = t.held_micros, last_at = t.at FROM unnest(v_changes) t
  WHERE a.ctid = t.place;
  RETURN v_results;
END
$$;

-- What stands for an end user in all tables but end_users: 128 bits of a digest with the salt of the account. Without the salt,
-- nobody can find the name by trying names.
CREATE OR REPLACE FUNCTION user_digest(p_salt bytea, p_name text) RETURNS text
  LANGUAGE sql STABLE PARALLEL SAFE
  RETURN CASE p_name WHEN '' THEN '' ELSE 'user_' || left(encode(sha256(p_salt || convert_to(p_name, 'UTF8')), 'hex'), 32) END;

-- Moves balances, appends ledger rows and adds up their usage; the only function that does. p_plans are the plans that have
-- limits, NULL without generations. The caller holds the locks of the lanes, and has checked movements, which have no hold. An
-- entry with a hold ends it: with an amount, it charges at most the held amount; without one, it only releases it. What becomes
-- free in an account that owes something is taken at once. Outcomes: "posted", or "missing" when the hold no longer exists, in
-- which case nothing changes.
CREATE OR REPLACE FUNCTION post_entries(p_entries entry_item[], p_plans plans_with_limits) RETURNS item_result[]
  LANGUAGE plpgsql
AS $$
DECLARE
  c_version constant smallint := 1;
  v_now constant timestamptz := clock_timestamp();
  -- No default: for each call, PostgreSQL would look up the input function of the type to read '{}'.
  v_results item_result[];
  -- The holds that end, the rows to append, and the accounts to update: each is written by one statement, because a
  -- statement for each row takes several times as long.
  v_ended tid[];
  v_rows ledger[];
  v_changes account_change[];
  -- The account of the current entry.
  v_account_id text;
  v_account_place tid;
  v_held bigint;
  v_balance bigint;
  v_spent bigint;
  v_seq bigint;
  v_hash bytea;
  v_current_hold text;
  -- The digest of the end user of the current entry, and the end users of the batch.
  v_user_id text;
  v_users end_users[];
  v_amount bigint;
  v_at timestamptz;
  -- Accounts that owe something, whose credit has expired, and whose charges start an automatic top-up.
  v_owing account_name[];
  v_expired account_name[];
  v_low account_name[];
  -- An account with grants that a debit other than a charge has changed. Movements come one by one.
  v_debited account_name;
  -- The counters of limits that the batch has changed, and where they are.
  v_counters limit_counter[];
  v_places tid[];
  v_settled call_counters;
  v_limits call_counters;
  v_n integer;
  r record;
BEGIN
  FOR r IN
    SELECT e.*, h.place AS hold_place, h.amount_micros AS held, h.idempotency_key, a.place AS account_place,
           a.held_micros, a.balance_micros, a.last_seq, a.last_hash, a.last_at, a.low_balance_micros, a.owed_micros,
           a.grants_expire_at, a.grants_spent_micros, a.auto_topup_below_micros,
           greatest(a.low_balance_micros, a.auto_topup_below_micros) AS watched_micros,
           h.counters AS held_counters,
           k.ancestors, a.is_limited AS account_is_limited, k.is_limited AS key_is_limited, a.limits_version, a.user_salt,
           -- Calls without limits do not pay for the look-up of counters.
           CASE WHEN e.kind = 'generation' AND limits_apply(a.is_limited, k.is_limited, k.plan, k.ancestors, p_plans.names) THEN (
             SELECT ROW(l.places, l.counters, l.are_current)::call_counters
             FROM counters_of_call(e.lane, e.account_id, array_append(k.ancestors, e.key_id), a.is_limited, k.is_limited, p_plans.names,
               p_plans.version, a.limits_version, user_digest(a.user_salt, e.user_id), greatest(v_now, a.last_at)) l) END AS limits
    FROM unnest(p_entries) WITH ORDINALITY
      AS e (lane, account_id, generation_id, id, month, kind, amount, reason, request_id, key_id, model, price_version, input,
        cached_input, cache_write, output, reasoning, images, image_tokens, user_id, trace_id, answer, cache_write_1h,
        price_tier, price_list_version, upstream, upstream_cost, adjusted_id, n)
    -- Each limit of 1 keeps a look-up by key: a join may be planned as a scan of all holds for each item.
    LEFT JOIN LATERAL (SELECT i.ctid AS place, i.amount_micros, i.idempotency_key, i.counters FROM holds i
      WHERE i.lane = e.lane AND i.id = e.generation_id AND i.account_id = e.account_id LIMIT 1) h ON true
    LEFT JOIN LATERAL (SELECT i.ctid AS place, i.held_micros, i.balance_micros, i.last_seq, i.last_hash,
        i.last_at, i.is_limited, i.has_limited_keys, i.limits_version, i.low_balance_micros, i.owed_micros,
        i.grants_expire_at, i.grants_spent_micros, i.auto_topup_below_micros, i.user_salt
      FROM accounts i WHERE i.lane = e.lane AND i.id = e.account_id LIMIT 1) a ON true
    LEFT JOIN LATERAL (SELECT i.plan, i.ancestors, i.is_limited FROM keys i
      WHERE (a.is_limited OR a.has_limited_keys OR p_plans.names IS NOT NULL)
        AND i.lane = e.lane AND i.id = e.key_id LIMIT 1) k ON true
    ORDER BY e.lane, e.account_id, e.generation_id, e.n
  LOOP
    -- A batch may end the same hold twice: only the first one counts.
    IF r.generation_id IS NOT NULL AND (r.hold_place IS NULL OR r.generation_id = v_current_hold) THEN
      v_results := array_append(v_results, ROW('end', r.n, 'missing', NULL, NULL, NULL, NULL, NULL)::item_result);
      CONTINUE;
    END IF;
    IF r.account_id IS DISTINCT FROM v_account_id THEN
      IF r.account_place IS NULL THEN
        RAISE EXCEPTION 'a ledger entry names an account that does not exist';
      END IF;
      IF v_account_place IS NOT NULL THEN
        v_changes := array_append(v_changes, ROW(v_account_place, v_held, v_balance, v_spent, v_seq, v_hash, v_at)::account_change);
      END IF;
      v_account_id := r.account_id;
      v_account_place := r.account_place;
      v_held := r.held_micros;
      v_balance := r.balance_micros;
      v_spent := r.grants_spent_micros;
      v_seq := r.last_seq;
      v_hash := r.last_hash;
      v_at := greatest(v_now, r.last_at);
      IF r.owed_micros > 0 THEN
        v_owing := array_append(v_owing, ROW(r.lane, r.account_id)::account_name);
      END IF;
      IF r.grants_expire_at <= v_now AND r.generation_id IS NOT NULL THEN
        v_expired := array_append(v_expired, ROW(r.lane, r.account_id)::account_name);
      END IF;
    END IF;
    IF r.generation_id IS NOT NULL THEN
      v_current_hold := r.generation_id;
      v_ended := array_append(v_ended, r.hold_place);
      v_held := v_held - r.held;
    END IF;
    v_amount := NULL;
    IF r.amount IS NULL THEN
      v_results := array_append(v_results, ROW('end', r.n, 'posted', NULL, NULL, NULL, NULL, NULL)::item_result);
    ELSE
      v_amount := greatest(r.amount, -r.held);
      v_balance := v_balance + v_amount;
      IF r.grants_expire_at IS NOT NULL AND v_amount < 0 THEN
        IF r.kind IN ('generation', 'expiry') THEN
          v_spent := v_spent - v_amount;
        ELSE
          v_debited := ROW(r.lane, r.account_id)::account_name;
        END IF;
      END IF;
      IF v_balance < r.watched_micros THEN
        IF v_balance < r.low_balance_micros AND r.low_balance_micros <= v_balance - v_amount THEN
          PERFORM write_event(r.lane, r.account_id, 'balance.low',
            jsonb_build_object('balance_micros', v_balance, 'low_balance_micros', r.low_balance_micros));
        END IF;
        IF v_balance < r.auto_topup_below_micros AND r.kind = 'generation' THEN
          v_low := array_append(v_low, ROW(r.lane, r.account_id)::account_name);
        END IF;
      END IF;
      v_seq := v_seq + 1;
      v_user_id := '';
      IF r.user_id <> '' THEN
        v_user_id := user_digest(r.user_salt, r.user_id);
        v_users := array_append(v_users, ROW(r.lane, r.account_id, v_user_id, r.user_id)::end_users);
      END IF;
      v_hash := ledger_hash(v_hash, c_version, r.account_id, v_seq, r.id, r.month, r.kind, v_amount, v_balance, r.reason,
        r.request_id, r.key_id, r.model, r.price_version, r.input, r.cached_input, r.cache_write, r.output, r.reasoning,
        r.images, r.image_tokens, v_user_id, r.trace_id, v_at, r.cache_write_1h, r.price_tier,
        r.price_list_version, r.upstream, r.upstream_cost, coalesce(r.adjusted_id, ''));
      v_rows := array_append(v_rows, ROW(r.lane, r.account_id, v_seq, r.id, r.month, r.kind, v_amount, v_balance,
        r.reason, r.request_id, r.key_id, r.model, r.price_version, r.input, r.cached_input, r.cache_write, r.output,
        r.reasoning, r.images, r.image_tokens, v_user_id, r.trace_id, v_at, c_version, v_hash, r.cache_write_1h,
        r.price_tier, r.price_list_version, r.upstream, r.upstream_cost, coalesce(r.adjusted_id, ''))::ledger);
      v_results := array_append(v_results,
        ROW('end', r.n, 'posted', v_balance, NULL, v_amount, NULL, NULL)::item_result);
    END IF;
    IF r.held_counters IS NOT NULL OR r.limits IS NOT NULL THEN
      v_limits := r.limits;
      IF NOT v_limits.are_current THEN
        v_limits := align_counters(r.lane, r.account_id, ARRAY(
          SELECT n FROM names_of_counters(r.lane, r.account_id, array_append(r.ancestors, r.key_id), r.account_is_limited,
            r.key_is_limited, p_plans.names, user_digest(r.user_salt, r.user_id)) n), r.limits_version, p_plans.version, v_at);
      END IF;
      v_settled := settle_limits(r.lane, r.account_id, v_limits.places, v_limits.counters, v_places, v_counters, r.held_counters, r.model,
        r.user_id, -v_amount, r.input::bigint + r.cached_input + r.cache_write + r.output + r.reasoning, v_at);
      FOR i IN 1..coalesce(cardinality(v_settled.places), 0) LOOP
        v_n := coalesce(array_position(v_places, v_settled.places[i]), cardinality(v_places) + 1, 1);
        v_places[v_n] := v_settled.places[i];
        v_counters[v_n] := v_settled.counters[i];
      END LOOP;
    END IF;
    IF r.idempotency_key IS NOT NULL THEN
      IF r.amount IS NULL THEN
        DELETE FROM answers x WHERE x.lane = r.lane AND x.account_id = r.account_id
          AND x.idempotency_key = r.idempotency_key AND x.generation_id = r.generation_id;
      ELSE
        UPDATE answers x SET answer = r.answer WHERE x.lane = r.lane AND x.account_id = r.account_id
          AND x.idempotency_key = r.idempotency_key AND x.generation_id = r.generation_id;
      END IF;
    END IF;
  END LOOP;
  IF v_account_place IS NOT NULL THEN
    DELETE FROM holds h WHERE h.ctid = ANY (v_ended);
    INSERT INTO ledger SELECT * FROM unnest(v_rows);
    PERFORM add_usage(v_rows, v_users);
    IF v_counters IS NOT NULL THEN
      PERFORM write_counters(v_places, v_counters);
    END IF;
    v_changes := array_append(v_changes, ROW(v_account_place, v_held, v_balance, v_spent, v_seq, v_hash, v_at)::account_change);
    UPDATE accounts a SET
      held_micros = t.held_micros, balance_micros = t.balance_micros, grants_spent_micros = t.grants_spent_micros,
      last_seq = t.last_seq, last_hash = t.last_hash, last_at = t.at
    FROM unnest(v_changes) t WHERE a.ctid = t.place;
    IF v_debited.account_id IS NOT NULL THEN
      PERFORM spend_grants(v_debited.lane, v_debited.account_id);
    END IF;
    IF v_owing IS NOT NULL THEN
      PERFORM take_owed(t.lane, t.account_id, '') FROM unnest(v_owing) t;
    END IF;
    IF v_expired IS NOT NULL THEN
      PERFORM expire_grants(t.lane, t.account_id) FROM unnest(v_expired) t;
    END IF;
    IF v_low IS NOT NULL THEN
      PERFORM start_auto_topup(t.lane, t.account_id) FROM unnest(v_low) t;
    END IF;
  END IF;
  RETURN v_results;
END
$$;

-- The hash of a ledger row: sha256(hash of the previous row ‖ fields). Each text follows its length, so two different rows never
-- give the same bytes. In SQL, so that PostgreSQL inlines it: a call for each row of a batch is slower. So is a row as parameter.
CREATE OR REPLACE FUNCTION ledger_hash(
  p_before bytea, p_version smallint, p_account_id text, p_seq bigint, p_id text, p_month integer, p_kind entry_kind,
  p_amount_micros bigint, p_balance_after_micros bigint, p_reason text, p_request_id text, p_key_id text, p_model text,
  p_price_version integer, p_input integer, p_cached_input integer, p_cache_write integer, p_output integer,
  p_reasoning integer, p_images integer, p_image_tokens integer, p_user_id text, p_trace_id text,
  p_created_at timestamptz, p_cache_write_1h integer, p_price_tier integer,
  p_price_list_version integer, p_upstream text, p_upstream_cost_micros bigint, p_adjusted_id text
) RETURNS bytea
  LANGUAGE sql STABLE PARALLEL SAFE
  RETURN sha256(p_before || convert_to(concat_ws(':', p_version, p_seq, p_month, p_kind, p_amount_micros,
    p_balance_after_micros, p_price_version, p_input, p_cached_input, p_cache_write, p_output, p_reasoning, p_images,
    p_image_tokens, (extract(epoch FROM p_created_at) * 1000000)::bigint, p_cache_write_1h, p_price_tier, p_price_list_version,
    coalesce(p_upstream_cost_micros::text, '-'), octet_length(p_account_id), p_account_id,
    octet_length(p_id), p_id, octet_length(p_reason), p_reason, octet_length(p_request_id), p_request_id,
    octet_length(p_key_id), p_key_id, octet_length(p_model), p_model, octet_length(p_user_id), p_user_id,
    octet_length(p_trace_id), p_trace_id, octet_length(p_upstream), p_upstream,
    octet_length(p_adjusted_id), p_adjusted_id), 'UTF8'));

-- What would happen to a hold, the only item of p_holds: the balance and the amount held of its account, and the check of its
-- limits. Holds nothing.
CREATE OR REPLACE FUNCTION quote_hold(p_holds hold_item[]) RETURNS SETOF item_result
  LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_hold constant hold_item := p_holds[1];
  v_plans constant plans_with_limits := limited_plans();
  v_now constant timestamptz := clock_timestamp();
  v_is_short boolean;
  v_check limit_check;
  r record;
BEGIN
  SELECT greatest(a.held_micros, a.balance_micros - CASE WHEN a.grants_expire_at <= v_now
        THEN expired_credit(a.lane, a.id, v_now) ELSE 0 END) AS balance_micros, a.held_micros, a.owed_micros, greatest(v_now, a.last_at) AS at, ARRAY(
      SELECT n FROM names_of_counters(a.lane, a.id, array_append(k.ancestors, k.id), a.is_limited, k.is_limited, v_plans.names,
        user_digest(a.user_salt, v_hold.user_id)) n) AS names
    INTO STRICT r FROM accounts a JOIN keys k ON k.lane = a.lane AND k.account_id = a.id
    WHERE a.lane = v_hold.lane AND a.id = v_hold.account_id AND k.id = v_hold.key_id;
  v_is_short := r.balance_micros - r.held_micros < v_hold.amount;
  -- Counters that do not exist are not written.
  v_check := check_limits(NULL, ARRAY(SELECT c.counter FROM aligned_counters(v_hold.lane, v_hold.account_id, r.names, r.at) c), NULL,
    NULL, v_hold.model, v_hold.user_id, v_hold.amount, v_hold.tokens, v_is_short, r.at);
  RETURN NEXT ROW('hold', 1, CASE WHEN r.owed_micros > 0 THEN 'owing' WHEN v_is_short THEN 'insufficient'
      WHEN v_check.is_refused THEN 'limited' ELSE 'held' END,
    r.balance_micros, r.held_micros, nullif(r.owed_micros, 0), NULL, v_check.details)::item_result;
END
$$;

-- The stored response of the first call with this idempotency key. No row if there is none.
CREATE OR REPLACE FUNCTION get_answer(p_lane smallint, p_account_id text, p_idempotency_key text) RETURNS TABLE (answer text)
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT
AS $$
  SELECT x.answer FROM answers x
    WHERE x.lane = p_lane AND x.account_id = p_account_id AND x.idempotency_key = p_idempotency_key
      AND x.answer IS NOT NULL
$$;

-- The lanes of this cell with abandoned holds: expired, or of a server that is not registered. Among the lanes from
-- p_from to p_to also those with answers older than 24 hours, and with counters of users whose windows have passed.
CREATE OR REPLACE FUNCTION lanes_to_sweep(p_from smallint, p_to smallint) RETURNS SETOF smallint
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT
AS $$
  SELECT h.lane FROM holds h
  WHERE (h.expires_at < statement_timestamp() OR NOT EXISTS (SELECT 1 FROM servers s WHERE s.id = h.server_id))
    AND NOT EXISTS (SELECT 1 FROM lanes l WHERE l.lane = h.lane AND NOT l.is_owned)
  UNION
  SELECT l.lane FROM lanes l WHERE l.lane BETWEEN p_from AND p_to AND l.is_owned
    AND (EXISTS (SELECT 1 FROM answers x WHERE x.lane = l.lane AND x.created_at < statement_timestamp() - interval '24 hours')
      OR EXISTS (SELECT 1 FROM limit_counters c WHERE c.lane = l.lane AND c.user_id <> ''
        AND c.expires_at < statement_timestamp() - interval '1 minute' AND 0 = ALL ((c.counter).held)))
$$;

-- Releases the abandoned holds of a lane, uncharged, and deletes answers older than 24 hours and counters of passed windows.
-- Returns the number of released holds: none if another cell owns the lane.
CREATE OR REPLACE FUNCTION sweep(p_lane smallint) RETURNS bigint
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_now timestamptz;
  v_swept bigint;
  v_released holds[];
  v_accounts text[];
  v_hold holds;
BEGIN
  PERFORM 1 FROM lanes l WHERE l.lane = p_lane AND l.is_owned FOR UPDATE;
  IF NOT FOUND THEN
    RETURN 0;
  END IF;
  v_now := clock_timestamp();
  DELETE FROM answers x USING (
    SELECT o.lane, o.account_id, o.idempotency_key FROM answers o
    WHERE o.lane = p_lane AND o.created_at < v_now - interval '24 hours' AND NOT EXISTS (
      SELECT 1 FROM holds h WHERE h.lane = p_lane AND h.id = o.generation_id)
    LIMIT 1000
  ) old WHERE x.lane = old.lane AND x.account_id = old.account_id AND x.idempotency_key = old.idempotency_key;
  WITH swept AS MATERIALIZED (
    DELETE FROM holds h WHERE h.lane = p_lane
      AND (h.expires_at < v_now OR NOT EXISTS (SELECT 1 FROM servers s WHERE s.id = h.server_id))
    RETURNING h.*
  ), forgotten AS (
    DELETE FROM answers x USING swept s
    WHERE x.lane = p_lane AND x.account_id = s.account_id AND x.idempotency_key = s.idempotency_key AND x.generation_id = s.id
  ), released AS (
    UPDATE accounts a SET held_micros = a.held_micros - t.amount
    FROM (SELECT s.account_id, sum(s.amount_micros)::bigint AS amount FROM swept s GROUP BY s.account_id) t
    WHERE a.lane = p_lane AND a.id = t.account_id
  )
  SELECT (SELECT count(*) FROM swept), ARRAY(SELECT ROW(s.*)::holds FROM swept s WHERE s.counters IS NOT NULL),
      ARRAY(SELECT DISTINCT s.account_id FROM swept s)
    INTO v_swept, v_released, v_accounts;
  PERFORM take_owed(p_lane, t.account_id, ''), expire_grants(p_lane, t.account_id) FROM unnest(v_accounts) t (account_id);
  FOREACH v_hold IN ARRAY v_released LOOP
    PERFORM write_counters(s.places, s.counters)
      FROM settle_limits(p_lane, v_hold.account_id, NULL, NULL, NULL, NULL, v_hold.counters, NULL, NULL, NULL, NULL, v_now) s
      WHERE s.places IS NOT NULL;
  END LOOP;
  -- Counters that hold nothing: those of users whose windows passed a minute ago, and those of owners without limits.
  WITH old AS MATERIALIZED (
    SELECT c.account_id, c.subject_id, c.plan, c.user_id FROM limit_counters c
    WHERE c.lane = p_lane AND 0 = ALL ((c.counter).held) AND ((c.user_id <> '' AND c.expires_at < v_now - interval '1 minute') OR NOT EXISTS (
      SELECT 1 FROM limits l WHERE l.lane = CASE c.plan WHEN '' THEN p_lane ELSE 1024 END
        AND l.owner_id = CASE c.plan WHEN '' THEN c.subject_id ELSE c.plan END))
    LIMIT 1000
  ), deleted AS (
    DELETE FROM limit_counters c USING old o
    WHERE c.lane = p_lane AND c.account_id = o.account_id AND c.subject_id = o.subject_id AND c.plan = o.plan
      AND c.user_id = o.user_id
  )
  UPDATE limit_users u SET counters = u.counters - o.deleted
  FROM (SELECT d.account_id, count(*)::integer AS deleted FROM old d WHERE d.user_id <> '' GROUP BY d.account_id) o
  WHERE u.lane = p_lane AND u.account_id = o.account_id;
  RETURN v_swept;
END
$$;

-- The holds of a server in those of a range of lanes that this cell owns. The server releases those that it does not
-- track: they were placed by statements whose result it no longer waited for.
CREATE OR REPLACE FUNCTION own_holds(p_server_id text, p_from smallint, p_to smallint) RETURNS TABLE (id text, account_id text)
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT
  SET enable_seqscan = off
AS $$
  SELECT h.id, h.account_id FROM holds h
    WHERE h.lane BETWEEN p_from AND p_to AND h.server_id = p_server_id
      AND NOT EXISTS (SELECT 1 FROM lanes l WHERE l.lane = h.lane AND NOT l.is_owned)
$$;
