-- Holds, settlements, answers that can be repeated, and the servers that own what is held.
--
-- A generation first holds the most it can cost, then runs, then settles: the hold goes, the balance falls by the
-- charge and one ledger row is appended, together. Everything here works on a whole batch under the locks of its
-- lanes, taken in ascending order, so batches of several servers never deadlock.

-- Who is there, by the database's clock. What a server holds that has not been seen for a while is given back.
CREATE TABLE vx.servers (
  id text PRIMARY KEY,
  -- Since when it has been seen without a break: one that was away itself cannot tell who else was.
  present_since timestamptz NOT NULL,
  seen_at timestamptz NOT NULL
);

CREATE TABLE vx.holds (
  lane smallint NOT NULL,
  -- That of the generation: "gen_…".
  id text NOT NULL,
  account_id text NOT NULL,
  server_id text NOT NULL,
  amount_micros bigint NOT NULL,
  idempotency_key text,
  expires_at timestamptz NOT NULL,
  PRIMARY KEY (lane, id),
  CONSTRAINT hold_not_negative CHECK (amount_micros >= 0)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);

-- One row per idempotency key, for 24 hours. While the call runs there is no answer yet.
CREATE TABLE vx.answers (
  lane smallint NOT NULL,
  account_id text NOT NULL,
  idempotency_key text NOT NULL,
  -- What was asked: another payload under the same key is refused.
  digest text NOT NULL,
  hold_id text NOT NULL,
  answer text,
  created_at timestamptz NOT NULL,
  PRIMARY KEY (lane, account_id, idempotency_key)
);
CREATE INDEX answers_by_age ON vx.answers (lane, created_at);

-- A generation has the id "gen_x" and its ledger row "led_x": it cannot have two.
CREATE UNIQUE INDEX ledger_entry_once ON vx.ledger (lane, id);

-- Rows are appended only by functions that hold the account's row; to look it up again for each costs a third.
ALTER TABLE vx.ledger DROP CONSTRAINT ledger_lane_account_id_fkey;

-- The same rule, written out: PostgreSQL checks it at each change of a balance, which a call of a function makes a third
-- dearer.
ALTER TABLE vx.accounts DROP CONSTRAINT lane_follows_id,
  ADD CONSTRAINT lane_follows_id CHECK (lane = (get_byte(sha256(convert_to(id, 'UTF8')), 0) & 63));

-- Whether a generation was settled, for a server that lost the answer.
CREATE FUNCTION vx.get_entry(p_lane smallint, p_account_id text, p_id text) RETURNS SETOF vx.ledger
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
  SELECT * FROM vx.ledger WHERE lane = p_lane AND id = p_id AND account_id = p_account_id
$$;

-- Both functions below read what a batch needs in one statement, decide in a loop over its rows, and write set by set.
-- Their plans are made once, perhaps while a table is empty, and must fit a full one: only index look-ups per row, and
-- rows that were read under the lock are written by their place.

-- Ends holds: a charge becomes a ledger row, no charge gives the hold back. Never more than was held is charged.
-- Outcomes: "settled", or "gone" when the hold was ended before.
CREATE FUNCTION vx.end_holds(
  p_lane smallint[], p_account_id text[], p_hold_id text[], p_charge_micros bigint[], p_reason text[],
  p_request_id text[], p_key_id text[], p_model text[], p_input_tokens bigint[], p_output_tokens bigint[],
  p_input_price bigint[], p_output_price bigint[], p_answer text[]
) RETURNS TABLE (n integer, outcome text, balance_micros bigint, charged_micros bigint)
  LANGUAGE plpgsql
  SET search_path = pg_catalog, pg_temp
  SET plan_cache_mode = force_generic_plan
  SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET enable_material = off
AS $$
#variable_conflict use_column
DECLARE
  v_now constant timestamptz := clock_timestamp();
  v_created constant text := '16:' || (extract(epoch FROM v_now) * 1000000)::bigint;
  -- By place in the batch: the rows to append.
  v_seq bigint[] := array_fill(NULL::bigint, ARRAY[cardinality(p_lane)]);
  v_charged bigint[] := v_seq;
  v_after bigint[] := v_seq;
  v_hash bytea[] := array_fill(NULL::bytea, ARRAY[cardinality(p_lane)]);
  v_ended tid[] := array_fill(NULL::tid, ARRAY[cardinality(p_lane)]);
  -- By account: what becomes of it.
  v_accounts integer := 0;
  v_account tid[];
  v_released bigint[];
  v_balance bigint[];
  v_last_seq bigint[];
  v_last_hash bytea[];
  v_current text := '';
  v_current_hold text := '';
  r record;
BEGIN
  FOR r IN
    SELECT s.*, h.ctid AS hold_place, h.amount_micros, h.idempotency_key, a.ctid AS account_place, a.last_seq,
           a.last_hash, a.balance_micros, c.charged_micros,
           -- What vx.ledger_hash takes of the row, but for the two values that the rows before it decide.
           concat(octet_length(s.account_id), ':', s.account_id) AS head,
           concat(octet_length(s.hold_id), ':led_', substr(s.hold_id, 5), '10:generation',
             length((-c.charged_micros)::text), ':', -c.charged_micros) AS middle,
           concat(octet_length(s.reason), ':', s.reason, octet_length(s.request_id), ':', s.request_id,
             octet_length(s.key_id), ':', s.key_id, octet_length(s.model), ':', s.model,
             length(s.input_tokens::text), ':', s.input_tokens, length(s.output_tokens::text), ':', s.output_tokens,
             length(s.input_price::text), ':', s.input_price, length(s.output_price::text), ':', s.output_price,
             '0:') AS tail
    FROM unnest(p_lane, p_account_id, p_hold_id, p_charge_micros, p_reason, p_request_id, p_key_id, p_model,
        p_input_tokens, p_output_tokens, p_input_price, p_output_price, p_answer) WITH ORDINALITY
      AS s (lane, account_id, hold_id, charge_micros, reason, request_id, key_id, model, input_tokens,
        output_tokens, input_price, output_price, answer, n)
    LEFT JOIN vx.holds h ON h.lane = s.lane AND h.id = s.hold_id AND h.account_id = s.account_id
    LEFT JOIN vx.accounts a ON a.lane = h.lane AND a.id = h.account_id
    CROSS JOIN LATERAL (
      SELECT CASE WHEN s.charge_micros IS NOT NULL THEN least(s.charge_micros, h.amount_micros) END AS charged_micros
    ) c
    ORDER BY s.lane, s.account_id, s.hold_id, s.n
  LOOP
    n := r.n;
    balance_micros := NULL;
    charged_micros := NULL;
    -- A batch may end the same hold twice: the first time counts.
    IF r.hold_place IS NULL OR r.hold_id = v_current_hold THEN
      outcome := 'gone';
      RETURN NEXT;
      CONTINUE;
    END IF;
    IF r.account_id <> v_current THEN
      v_current := r.account_id;
      v_accounts := v_accounts + 1;
      v_account[v_accounts] := r.account_place;
      v_released[v_accounts] := 0;
      v_balance[v_accounts] := r.balance_micros;
      v_last_seq[v_accounts] := r.last_seq;
      v_last_hash[v_accounts] := r.last_hash;
    END IF;
    v_current_hold := r.hold_id;
    v_ended[r.n] := r.hold_place;
    v_released[v_accounts] := v_released[v_accounts] + r.amount_micros;
    outcome := 'settled';
    IF r.charged_micros IS NOT NULL THEN
      v_last_seq[v_accounts] := v_last_seq[v_accounts] + 1;
      v_balance[v_accounts] := v_balance[v_accounts] - r.charged_micros;
      v_last_hash[v_accounts] := sha256(v_last_hash[v_accounts] || convert_to(concat(
        r.head, length(v_last_seq[v_accounts]::text), ':', v_last_seq[v_accounts], r.middle,
        length(v_balance[v_accounts]::text), ':', v_balance[v_accounts], r.tail, v_created), 'UTF8'));
      v_seq[r.n] := v_last_seq[v_accounts];
      v_charged[r.n] := r.charged_micros;
      v_after[r.n] := v_balance[v_accounts];
      v_hash[r.n] := v_last_hash[v_accounts];
      balance_micros := v_balance[v_accounts];
      charged_micros := r.charged_micros;
    END IF;
    IF r.idempotency_key IS NOT NULL THEN
      IF r.charged_micros IS NULL THEN
        DELETE FROM vx.answers x WHERE x.lane = r.lane AND x.account_id = r.account_id
          AND x.idempotency_key = r.idempotency_key AND x.hold_id = r.hold_id;
      ELSE
        UPDATE vx.answers x SET answer = r.answer WHERE x.lane = r.lane AND x.account_id = r.account_id
          AND x.idempotency_key = r.idempotency_key AND x.hold_id = r.hold_id;
      END IF;
    END IF;
    RETURN NEXT;
  END LOOP;

  DELETE FROM vx.holds WHERE ctid = ANY (v_ended);
  INSERT INTO vx.ledger (lane, account_id, seq, id, kind, amount_micros, balance_after_micros, reason, request_id,
    key_id, model, input_tokens, output_tokens, input_micros_per_million_tokens, output_micros_per_million_tokens,
    created_at, hash)
  SELECT lane, account_id, seq, 'led_' || substr(hold_id, 5), 'generation', -charged, balance_after, reason, request_id,
    key_id, model, input_tokens, output_tokens, input_price, output_price, v_now, hash
  FROM unnest(p_lane, p_account_id, v_seq, p_hold_id, v_charged, v_after, p_reason, p_request_id, p_key_id, p_model,
      p_input_tokens, p_output_tokens, p_input_price, p_output_price, v_hash)
    AS s (lane, account_id, seq, hold_id, charged, balance_after, reason, request_id, key_id, model, input_tokens,
      output_tokens, input_price, output_price, hash)
  WHERE seq IS NOT NULL;
  UPDATE vx.accounts a SET
    held_micros = a.held_micros - t.released, balance_micros = t.balance, last_seq = t.last_seq, last_hash = t.last_hash
  FROM unnest(v_account, v_released, v_balance, v_last_seq, v_last_hash)
    AS t (place, released, balance, last_seq, last_hash)
  WHERE a.ctid = t.place;
END
$$;

-- Places holds, in the order given: each that still fits the account's free balance is placed, whatever came before.
-- Outcomes: "held"; "insufficient"; "revoked" when the key was revoked since the call was let in; with an idempotency
-- key also "answered", "running" and "reused".
CREATE FUNCTION vx.place_holds(
  p_server_id text, p_lane smallint[], p_account_id text[], p_hold_id text[], p_key_id text[],
  p_amount_micros bigint[], p_seconds integer[], p_idempotency_key text[], p_digest text[]
) RETURNS TABLE (n integer, outcome text, balance_micros bigint, held_micros bigint, answer text)
  LANGUAGE plpgsql
  SET search_path = pg_catalog, pg_temp
  SET plan_cache_mode = force_generic_plan
  SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET enable_material = off
AS $$
#variable_conflict use_column
DECLARE
  v_now constant timestamptz := clock_timestamp();
  v_placed boolean[] := array_fill(false, ARRAY[cardinality(p_lane)]);
  v_accounts integer := 0;
  v_account tid[];
  v_held bigint[];
  v_current text := '';
  -- The idempotency keys that earlier calls of the batch took, and their payloads.
  v_claimed text[];
  v_digests text[];
  r record;
BEGIN
  FOR r IN
    SELECT s.*, a.ctid AS account_place, a.balance_micros, a.held_micros, k.revoked_at IS NOT NULL AS revoked, x.answer,
           x.digest AS known_digest, h.id IS NOT NULL AS running
    FROM unnest(p_lane, p_account_id, p_key_id, p_amount_micros, p_idempotency_key, p_digest) WITH ORDINALITY
      AS s (lane, account_id, key_id, amount_micros, idempotency_key, digest, n)
    LEFT JOIN vx.accounts a ON a.lane = s.lane AND a.id = s.account_id
    LEFT JOIN vx.keys k ON k.lane = s.lane AND k.id = s.key_id
    LEFT JOIN vx.answers x ON x.lane = s.lane AND x.account_id = s.account_id
      AND x.idempotency_key = s.idempotency_key AND x.created_at > v_now - interval '24 hours'
    LEFT JOIN vx.holds h ON h.lane = x.lane AND h.id = x.hold_id AND x.answer IS NULL
    ORDER BY s.lane, s.account_id, s.n
  LOOP
    IF r.account_id <> v_current THEN
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
    ELSIF r.balance_micros - held_micros < r.amount_micros THEN
      outcome := 'insufficient';
    ELSE
      outcome := 'held';
      v_placed[r.n] := true;
      v_held[v_accounts] := held_micros + r.amount_micros;
      IF r.idempotency_key IS NOT NULL THEN
        v_claimed := v_claimed || r.idempotency_key;
        v_digests := v_digests || r.digest;
        INSERT INTO vx.answers (lane, account_id, idempotency_key, digest, hold_id, created_at)
          VALUES (r.lane, r.account_id, r.idempotency_key, r.digest, p_hold_id[r.n], v_now)
          ON CONFLICT ON CONSTRAINT answers_pkey DO UPDATE
            SET digest = excluded.digest, hold_id = excluded.hold_id, answer = NULL, created_at = excluded.created_at;
      END IF;
    END IF;
    RETURN NEXT;
  END LOOP;

  INSERT INTO vx.holds (lane, id, account_id, server_id, amount_micros, idempotency_key, expires_at)
  SELECT lane, hold_id, account_id, p_server_id, amount_micros, idempotency_key, v_now + make_interval(secs => seconds)
  FROM unnest(p_lane, p_account_id, p_hold_id, p_amount_micros, p_seconds, p_idempotency_key, v_placed)
    AS s (lane, account_id, hold_id, amount_micros, seconds, idempotency_key, placed)
  WHERE placed;
  UPDATE vx.accounts a SET held_micros = t.held FROM unnest(v_account, v_held) AS t (place, held)
  WHERE a.ctid = t.place AND a.held_micros <> t.held;
END
$$;

-- One batch of everything that moves money for generations. Endings come first: what they free can be held at once.
CREATE FUNCTION vx.bill(
  p_server_id text,
  e_lane smallint[], e_account_id text[], e_hold_id text[], e_charge_micros bigint[], e_reason text[],
  e_request_id text[], e_key_id text[], e_model text[], e_input_tokens bigint[], e_output_tokens bigint[],
  e_input_price bigint[], e_output_price bigint[], e_answer text[],
  h_lane smallint[], h_account_id text[], h_hold_id text[], h_key_id text[], h_amount_micros bigint[],
  h_seconds integer[], h_idempotency_key text[], h_digest text[]
) RETURNS TABLE (
    ends boolean, n integer, outcome text, balance_micros bigint, held_micros bigint, charged_micros bigint, answer text
  )
  LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  PERFORM 1 FROM vx.lanes l WHERE l.lane = ANY (e_lane || h_lane) ORDER BY l.lane FOR UPDATE;
  -- A server that was thought to be gone is there again: what it holds now must stay.
  IF cardinality(h_lane) > 0 AND NOT EXISTS (SELECT FROM vx.servers s WHERE s.id = p_server_id) THEN
    PERFORM vx.beat(p_server_id);
  END IF;
  IF cardinality(e_lane) > 0 THEN
    RETURN QUERY SELECT true, x.n, x.outcome, x.balance_micros, 0::bigint, x.charged_micros, NULL::text
    FROM vx.end_holds(e_lane, e_account_id, e_hold_id, e_charge_micros, e_reason, e_request_id, e_key_id, e_model,
      e_input_tokens, e_output_tokens, e_input_price, e_output_price, e_answer) x;
  END IF;
  IF cardinality(h_lane) > 0 THEN
    RETURN QUERY SELECT false, x.n, x.outcome, x.balance_micros, x.held_micros, 0::bigint, x.answer
    FROM vx.place_holds(p_server_id, h_lane, h_account_id, h_hold_id, h_key_id, h_amount_micros, h_seconds,
      h_idempotency_key, h_digest) x;
  END IF;
END
$$;

-- For the audit: the function of 0002 knew of no holds.
CREATE OR REPLACE FUNCTION vx.held_by_accounts(p_lane smallint, p_account_id text[])
  RETURNS TABLE (account_id text, held_micros numeric)
  LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $$
  SELECT h.account_id, sum(h.amount_micros) FROM vx.holds h
  WHERE h.lane = p_lane AND h.account_id = ANY (p_account_id) GROUP BY h.account_id
$$;

-- Servers ---------------------------------------------------------------------------------------------------

-- Says that the server is there, and forgets those that have not been seen for 20 s. A server that was away itself
-- for so long (or whose database was) first has to be there for that time before it may judge others.
CREATE FUNCTION vx.beat(p_server_id text) RETURNS void
  LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_now constant timestamptz := clock_timestamp();
  v_since timestamptz;
BEGIN
  INSERT INTO vx.servers AS s VALUES (p_server_id, v_now, v_now)
    ON CONFLICT (id) DO UPDATE SET
      present_since = CASE WHEN s.seen_at < v_now - interval '5 seconds' THEN v_now ELSE s.present_since END,
      seen_at = v_now
    RETURNING present_since INTO v_since;
  IF v_since < v_now - interval '20 seconds' THEN
    DELETE FROM vx.servers WHERE seen_at < v_now - interval '20 seconds';
  END IF;
END
$$;

CREATE FUNCTION vx.leave(p_server_id text) RETURNS void
  LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
  DELETE FROM vx.servers WHERE id = p_server_id
$$;

-- For the one server that knows that no other can be there.
CREATE FUNCTION vx.forget_servers() RETURNS void
  LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
  DELETE FROM vx.servers
$$;

-- The lanes with holds that nobody will settle: their time is over, or their server is gone.
CREATE FUNCTION vx.lanes_to_sweep() RETURNS SETOF smallint
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
  SELECT DISTINCT h.lane FROM vx.holds h
  WHERE h.expires_at < clock_timestamp() OR NOT EXISTS (SELECT FROM vx.servers s WHERE s.id = h.server_id)
$$;

-- Gives such holds back, uncharged, and forgets answers that are older than 24 hours. Returns how many holds.
CREATE FUNCTION vx.sweep(p_lane smallint) RETURNS bigint
  LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_swept bigint;
BEGIN
  PERFORM 1 FROM vx.lanes WHERE lane = p_lane FOR UPDATE;
  DELETE FROM vx.answers x USING (
    SELECT lane, account_id, idempotency_key FROM vx.answers
    WHERE lane = p_lane AND created_at < clock_timestamp() - interval '24 hours' AND NOT EXISTS (
      SELECT FROM vx.holds h WHERE h.lane = p_lane AND h.id = hold_id)
    LIMIT 1000
  ) old WHERE x.lane = old.lane AND x.account_id = old.account_id AND x.idempotency_key = old.idempotency_key;
  WITH swept AS MATERIALIZED (
    DELETE FROM vx.holds h WHERE h.lane = p_lane
      AND (h.expires_at < clock_timestamp() OR NOT EXISTS (SELECT FROM vx.servers s WHERE s.id = h.server_id))
    RETURNING h.account_id, h.amount_micros, h.idempotency_key, h.id
  ), forgotten AS (
    DELETE FROM vx.answers x USING swept s
    WHERE x.lane = p_lane AND x.account_id = s.account_id AND x.idempotency_key = s.idempotency_key AND x.hold_id = s.id
  ), released AS (
    UPDATE vx.accounts a SET held_micros = a.held_micros - t.amount
    FROM (SELECT account_id, sum(amount_micros)::bigint AS amount FROM swept GROUP BY account_id) t
    WHERE a.lane = p_lane AND a.id = t.account_id
  )
  SELECT count(*) INTO v_swept FROM swept;
  RETURN v_swept;
END
$$;

-- The keys that were revoked in the last so many seconds: their running streams are cut.
CREATE FUNCTION vx.recently_revoked_keys(p_seconds integer) RETURNS SETOF text
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
  SELECT id FROM vx.keys WHERE revoked_at > clock_timestamp() - make_interval(secs => p_seconds)
$$;

REVOKE ALL ON vx.servers, vx.holds, vx.answers FROM PUBLIC;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA vx FROM PUBLIC;
GRANT EXECUTE ON FUNCTION
  vx.bill(text, smallint[], text[], text[], bigint[], text[], text[], text[], text[], bigint[], bigint[], bigint[],
    bigint[], text[], smallint[], text[], text[], text[], bigint[], integer[], text[], text[]),
  vx.beat(text), vx.leave(text), vx.forget_servers(), vx.lanes_to_sweep(), vx.sweep(smallint),
  vx.recently_revoked_keys(integer), vx.get_entry(smallint, text, text)
  TO vx_app;
