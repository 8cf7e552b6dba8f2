-- Moves balances and appends ledger rows; the only function that does either. The caller holds the locks of the lanes.
--
-- An entry with a hold ends that hold: with an amount, it charges at most what is held; without one, it only releases the
-- hold. An entry without a hold is a credit or an adjustment that the caller has checked.
-- Outcomes: "posted", or "gone" when the hold no longer exists, in which case nothing changes.
CREATE OR REPLACE FUNCTION post_entries(p_entries json)
  RETURNS TABLE (n bigint, outcome text, balance_micros bigint, amount_micros bigint)
  LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
  c_version constant smallint := 1;
  v_now constant timestamptz := clock_timestamp();
  v_ended tid[] := '{}';
  -- One element per account: its row, and the new values.
  v_accounts integer := 0;
  v_account tid[];
  v_released bigint[];
  v_balance bigint[];
  v_seq bigint[];
  v_hash bytea[];
  v_current text := '';
  v_current_hold text := '';
  r record;
BEGIN
  FOR r IN
    SELECT e.*, h.ctid AS hold_place, h.amount_micros AS held, h.idempotency_key, a.ctid AS account_place,
           a.last_seq, a.last_hash, a.balance_micros
    FROM ROWS FROM (json_to_recordset(p_entries) AS (
        lane smallint, account_id text, hold_id text, id text, month integer, kind text, amount bigint, reason text,
        request_id text, key_id text, model text, input_tokens bigint, output_tokens bigint, input_price bigint,
        output_price bigint, answer text)) WITH ORDINALITY
      AS e (lane, account_id, hold_id, id, month, kind, amount, reason, request_id, key_id, model, input_tokens,
        output_tokens, input_price, output_price, answer, n)
    LEFT JOIN holds h ON h.lane = e.lane AND h.id = e.hold_id AND h.account_id = e.account_id
    LEFT JOIN accounts a ON a.lane = e.lane AND a.id = e.account_id
    ORDER BY e.lane, e.account_id, e.hold_id, e.n
  LOOP
    n := r.n;
    balance_micros := NULL;
    amount_micros := NULL;
    -- A batch may end the same hold twice: only the first one counts.
    IF r.hold_id IS NOT NULL AND (r.hold_place IS NULL OR r.hold_id = v_current_hold) THEN
      outcome := 'gone';
      RETURN NEXT;
      CONTINUE;
    END IF;
    IF r.account_id <> v_current THEN
      IF r.account_place IS NULL THEN
        RAISE EXCEPTION 'a ledger entry names an account that does not exist';
      END IF;
      v_current := r.account_id;
      v_accounts := v_accounts + 1;
      v_account[v_accounts] := r.account_place;
      v_released[v_accounts] := 0;
      v_balance[v_accounts] := r.balance_micros;
      v_seq[v_accounts] := r.last_seq;
      v_hash[v_accounts] := r.last_hash;
    END IF;
    outcome := 'posted';
    IF r.hold_id IS NOT NULL THEN
      v_current_hold := r.hold_id;
      v_ended := v_ended || r.hold_place;
      v_released[v_accounts] := v_released[v_accounts] + r.held;
    END IF;
    IF r.amount IS NOT NULL THEN
      amount_micros := greatest(r.amount, -r.held);
      balance_micros := v_balance[v_accounts] + amount_micros;
      v_balance[v_accounts] := balance_micros;
      v_seq[v_accounts] := v_seq[v_accounts] + 1;
      v_hash[v_accounts] := ledger_hash(v_hash[v_accounts], c_version, r.account_id, v_seq[v_accounts], r.id,
        r.month, r.kind, amount_micros, balance_micros, r.reason, r.request_id, r.key_id, r.model, r.input_tokens, r.output_tokens,
        r.input_price, r.output_price, v_now);
      INSERT INTO ledger (lane, account_id, seq, id, month, kind, amount_micros, balance_after_micros, reason,
          request_id, key_id, model, input_tokens, output_tokens, input_micros_per_million_tokens,
          output_micros_per_million_tokens, created_at, hash_version, hash)
        VALUES (r.lane, r.account_id, v_seq[v_accounts], r.id, r.month, r.kind, amount_micros, balance_micros,
          r.reason, r.request_id, r.key_id, r.model, r.input_tokens, r.output_tokens, r.input_price, r.output_price,
          v_now, c_version, v_hash[v_accounts]);
    END IF;
    IF r.idempotency_key IS NOT NULL THEN
      IF r.amount IS NULL THEN
        DELETE FROM answers x WHERE x.lane = r.lane AND x.account_id = r.account_id
          AND x.idempotency_key = r.idempotency_key AND x.hold_id = r.hold_id;
      ELSE
        UPDATE answers x SET answer = r.answer WHERE x.lane = r.lane AND x.account_id = r.account_id
          AND x.idempotency_key = r.idempotency_key AND x.hold_id = r.hold_id;
      END IF;
    END IF;
    RETURN NEXT;
  END LOOP;

  DELETE FROM holds h WHERE h.ctid = ANY (v_ended);
  UPDATE accounts a SET
    held_micros = a.held_micros - t.released, balance_micros = t.balance, last_seq = t.seq, last_hash = t.hash
  FROM unnest(v_account, v_released, v_balance, v_seq, v_hash) AS t (place, released, balance, seq, hash)
  WHERE a.ctid = t.place;
END
$$;
