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
  -- By place in the batch: the holds that end, and the rows to append.
  v_items constant integer := json_array_length(p_entries);
  v_ended tid[] := array_fill(NULL::tid, ARRAY[v_items]);
  v_row_seq bigint[] := array_fill(NULL::bigint, ARRAY[v_items]);
  v_row_amount bigint[] := v_row_seq;
  v_row_balance bigint[] := v_row_seq;
  v_row_hash bytea[] := array_fill(NULL::bytea, ARRAY[v_items]);
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
    SELECT e.*, h.place AS hold_place, h.amount_micros AS held, h.idempotency_key, a.place AS account_place,
           a.last_seq, a.last_hash, a.balance_micros
    FROM json_populate_recordset(NULL::entry_item, p_entries) WITH ORDINALITY
      AS e (lane, account_id, hold_id, id, month, kind, amount, reason, request_id, key_id, model, input_tokens,
        output_tokens, input_price, output_price, answer, n)
    -- Each limit of 1 keeps a look-up by key: a join may be planned as a scan of all holds for each item.
    LEFT JOIN LATERAL (SELECT i.ctid AS place, i.amount_micros, i.idempotency_key FROM holds i
      WHERE i.lane = e.lane AND i.id = e.hold_id AND i.account_id = e.account_id LIMIT 1) h ON true
    LEFT JOIN LATERAL (SELECT i.ctid AS place, i.last_seq, i.last_hash, i.balance_micros FROM accounts i
      WHERE i.lane = e.lane AND i.id = e.account_id LIMIT 1) a ON true
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
      v_ended[r.n] := r.hold_place;
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
      v_row_seq[r.n] := v_seq[v_accounts];
      v_row_amount[r.n] := amount_micros;
      v_row_balance[r.n] := balance_micros;
      v_row_hash[r.n] := v_hash[v_accounts];
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

  -- Set by set: a statement for each row takes several times as long.
  DELETE FROM holds h WHERE h.ctid = ANY (v_ended);
  INSERT INTO ledger (lane, account_id, seq, id, month, kind, amount_micros, balance_after_micros, reason, request_id,
    key_id, model, input_tokens, output_tokens, input_micros_per_million_tokens, output_micros_per_million_tokens,
    created_at, hash_version, hash)
  SELECT e.lane, e.account_id, e.seq, e.id, e.month, e.kind, e.row_amount, e.row_balance, e.reason, e.request_id,
    e.key_id, e.model, e.input_tokens, e.output_tokens, e.input_price, e.output_price, v_now, c_version, e.hash
  FROM ROWS FROM (json_populate_recordset(NULL::entry_item, p_entries),
      unnest(v_row_seq, v_row_amount, v_row_balance, v_row_hash))
    AS e (lane, account_id, hold_id, id, month, kind, amount, reason, request_id, key_id, model, input_tokens,
      output_tokens, input_price, output_price, answer, seq, row_amount, row_balance, hash)
  WHERE e.seq IS NOT NULL;
  UPDATE accounts a SET
    held_micros = a.held_micros - t.released, balance_micros = t.balance, last_seq = t.seq, last_hash = t.hash
  FROM unnest(v_account, v_released, v_balance, v_seq, v_hash) AS t (place, released, balance, seq, hash)
  WHERE a.ctid = t.place;
END
$$;
