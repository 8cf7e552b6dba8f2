-- Places holds, in the order given: each hold that fits the free balance of its account is placed, whether or not an earlier one
-- fitted. p_plans are the plans that have limits. The caller holds the locks of the lanes. Outcomes: "held"; "insufficient", with the
-- threshold of automatic top-ups as the amount, NULL if none can start; "owing" when a reversed payment is still owed, with what is
-- owed as the amount; "limited" when it does not fit a limit; "outdated" when the secret of the call is no longer valid, or the key or
-- the prices of the account are no longer those that the call was admitted with: the gate admits the call again or refuses it; with an
-- idempotency key also "answered", "running" and "reused". Each result has the balance and the amount held before the hold. The stored response of
-- "answered" is read with get_answer: many long ones would delay the other items of the batch.
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
