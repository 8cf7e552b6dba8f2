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
    SELECT e.*, a.ctid AS account_place, a.balance_micros, a.held_micros, k.revoked_at IS NOT NULL AS revoked,
           x.answer, x.digest AS known_digest, h.id IS NOT NULL AS running
    FROM ROWS FROM (json_to_recordset(p_holds) AS (
        lane smallint, account_id text, hold_id text, key_id text, amount bigint, seconds integer,
        idempotency_key text, digest text)) WITH ORDINALITY
      AS e (lane, account_id, hold_id, key_id, amount, seconds, idempotency_key, digest, n)
    LEFT JOIN accounts a ON a.lane = e.lane AND a.id = e.account_id
    LEFT JOIN keys k ON k.lane = e.lane AND k.id = e.key_id
    LEFT JOIN answers x ON x.lane = e.lane AND x.account_id = e.account_id
      AND x.idempotency_key = e.idempotency_key AND x.created_at > v_now - interval '24 hours'
    LEFT JOIN holds h ON h.lane = x.lane AND h.id = x.hold_id AND x.answer IS NULL
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
      INSERT INTO holds (lane, id, account_id, server_id, amount_micros, idempotency_key, expires_at)
        VALUES (r.lane, r.hold_id, r.account_id, p_server_id, r.amount, r.idempotency_key,
                v_now + make_interval(secs => r.seconds));
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

  UPDATE accounts a SET held_micros = t.held FROM unnest(v_account, v_held) AS t (place, held)
  WHERE a.ctid = t.place AND a.held_micros <> t.held;
END
$$;
