-- Moves balances, appends ledger rows and adds up their usage; the only function that does. p_plans are the plans that have limits,
-- NULL without generations. The caller holds the locks of the lanes.
--
-- An entry with a hold ends that hold: with an amount, it charges at most the held amount; without one, it only releases the
-- hold. An entry without a hold is a movement that the caller has checked. What becomes free in an account that owes something is
-- taken at once.
-- Outcomes: "posted", or "missing" when the hold no longer exists, in which case nothing changes.
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
  -- Accounts that owe something, and their lanes.
  v_owing text[];
  v_owing_lanes smallint[];
  -- Accounts whose credit has expired, and their lanes.
  v_expired text[];
  v_expired_lanes smallint[];
  -- An account with grants that a debit other than a charge has changed, and its lane. Movements come one by one.
  v_debited text;
  v_debited_lane smallint;
  -- Accounts whose charges start an automatic top-up, and their lanes.
  v_low text[];
  v_low_lanes smallint[];
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
        v_owing := array_append(v_owing, r.account_id);
        v_owing_lanes := array_append(v_owing_lanes, r.lane);
      END IF;
      IF r.grants_expire_at <= v_now AND r.generation_id IS NOT NULL THEN
        v_expired := array_append(v_expired, r.account_id);
        v_expired_lanes := array_append(v_expired_lanes, r.lane);
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
          v_debited := r.account_id;
          v_debited_lane := r.lane;
        END IF;
      END IF;
      IF v_balance < r.watched_micros THEN
        IF v_balance < r.low_balance_micros AND r.low_balance_micros <= v_balance - v_amount THEN
          PERFORM write_event(r.lane, r.account_id, 'balance.low',
            jsonb_build_object('balance_micros', v_balance, 'low_balance_micros', r.low_balance_micros));
        END IF;
        IF v_balance < r.auto_topup_below_micros AND r.kind = 'generation' THEN
          v_low := array_append(v_low, r.account_id);
          v_low_lanes := array_append(v_low_lanes, r.lane);
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
    IF v_debited IS NOT NULL THEN
      PERFORM spend_grants(v_debited_lane, v_debited);
    END IF;
    IF v_owing IS NOT NULL THEN
      PERFORM take_owed(t.lane, t.account_id, '') FROM unnest(v_owing_lanes, v_owing) t (lane, account_id);
    END IF;
    IF v_expired IS NOT NULL THEN
      PERFORM expire_grants(t.lane, t.account_id) FROM unnest(v_expired_lanes, v_expired) t (lane, account_id);
    END IF;
    IF v_low IS NOT NULL THEN
      PERFORM start_auto_topup(t.lane, t.account_id) FROM unnest(v_low_lanes, v_low) t (lane, account_id);
    END IF;
  END IF;
  RETURN v_results;
END
$$;
