-- Places holds, in the order given: each hold that fits the free balance of its account is placed, whether or not an
-- earlier one fitted. The caller holds the locks of the lanes.
-- Outcomes: "held"; "insufficient"; "revoked" when the key was revoked after admission; with an idempotency key also
-- "answered", "running" and "reused".
CREATE OR REPLACE FUNCTION place_holds(p_server_id text, p_holds json)
  RETURNS TABLE (n bigint, outcome text, balance_micros bigint, held_micros bigint, answer text)
  LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
  v_now constant timestamptz := clock_timestamp();
  v_placed boolean[] := array_fill(false, ARRAY[json_array_length(p_holds)]);
  v_accounts integer := 0;
  v_account tid[];
  v_held bigint[];
  v_current text := '';
  -- The idempotency keys that earlier holds of this batch took, and their payloads.
  v_claimed text[];
  v_digests text[];
  r record;
BEGIN
  FOR r IN
    SELECT e.*, a.place AS account_place, a.balance_micros, a.held_micros, k.revoked_at IS NOT NULL AS revoked,
           x.answer, x.digest AS known_digest, h.is_open IS NOT NULL AS running
    FROM json_populate_recordset(NULL::hold_item, p_holds) WITH ORDINALITY
      AS e (lane, account_id, hold_id, key_id, amount, seconds, idempotency_key, digest, n)
    -- Each limit of 1 keeps a look-up by key: a join may be planned as a scan of all holds for each item.
    LEFT JOIN LATERAL (SELECT i.ctid AS place, i.balance_micros, i.held_micros FROM accounts i
      WHERE i.lane = e.lane AND i.id = e.account_id LIMIT 1) a ON true
    LEFT JOIN LATERAL (SELECT i.revoked_at FROM keys i
      WHERE i.lane = e.lane AND i.id = e.key_id LIMIT 1) k ON true
    LEFT JOIN LATERAL (SELECT i.lane, i.hold_id, i.answer, i.digest FROM answers i
      WHERE i.lane = e.lane AND i.account_id = e.account_id AND i.idempotency_key = e.idempotency_key
        AND i.created_at > v_now - interval '24 hours' LIMIT 1) x ON true
    LEFT JOIN LATERAL (SELECT true AS is_open FROM holds i
      WHERE i.lane = x.lane AND i.id = x.hold_id AND x.answer IS NULL LIMIT 1) h ON true
    ORDER BY e.lane, e.account_id, e.n
  LOOP
    IF r.account_id <> v_current THEN
      IF r.account_place IS NULL THEN
        RAISE EXCEPTION 'a hold names an account that does not exist';
      END IF;
      v_current := r.account_id;
      v_accounts := v_accounts + 1;
      v_account[v_accounts] := r.account_place;
      v_held[v_accounts] := r.held_micros;
      v_claimed := '{}';
      v_digests := '{}';
    END IF;
    n := r.n;
    balance_micros := r.balance_micros;
    held_micros := v_held[v_accounts];
    answer := NULL;
    IF r.revoked THEN
      outcome := 'revoked';
    ELSIF r.idempotency_key IS NOT NULL AND (r.running OR r.answer IS NOT NULL) AND r.known_digest <> r.digest THEN
      outcome := 'reused';
    ELSIF r.answer IS NOT NULL THEN
      outcome := 'answered';
      answer := r.answer;
    ELSIF r.running THEN
      outcome := 'running';
    ELSIF r.idempotency_key = ANY (v_claimed) THEN
      outcome := CASE WHEN v_digests[array_position(v_claimed, r.idempotency_key)] = r.digest
                      THEN 'running' ELSE 'reused' END;
    ELSIF r.balance_micros - held_micros < r.amount THEN
      outcome := 'insufficient';
    ELSE
      outcome := 'held';
      v_held[v_accounts] := held_micros + r.amount;
      v_placed[r.n] := true;
      IF r.idempotency_key IS NOT NULL THEN
        v_claimed := v_claimed || r.idempotency_key;
        v_digests := v_digests || r.digest;
        INSERT INTO answers (lane, account_id, idempotency_key, digest, hold_id, created_at)
          VALUES (r.lane, r.account_id, r.idempotency_key, r.digest, r.hold_id, v_now)
          ON CONFLICT ON CONSTRAINT answers_pkey DO UPDATE
            SET digest = excluded.digest, hold_id = excluded.hold_id, answer = NULL, created_at = excluded.created_at;
      END IF;
    END IF;
    RETURN NEXT;
  END LOOP;

  INSERT INTO holds (lane, id, account_id, server_id, amount_micros, idempotency_key, expires_at)
  SELECT e.lane, e.hold_id, e.account_id, p_server_id, e.amount, e.idempotency_key,
    v_now + make_interval(secs => e.seconds)
  FROM ROWS FROM (json_populate_recordset(NULL::hold_item, p_holds), unnest(v_placed))
    AS e (lane, account_id, hold_id, key_id, amount, seconds, idempotency_key, digest, is_placed)
  WHERE e.is_placed;
  UPDATE accounts a SET held_micros = t.held FROM unnest(v_account, v_held) AS t (place, held)
  WHERE a.ctid = t.place AND a.held_micros <> t.held;
END
$$;
