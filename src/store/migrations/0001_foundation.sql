-- Accounts, plans, keys, rate windows and the ledger.
--
-- Every row belongs to a lane: the low 6 bits of a SHA-256 byte, taken from the fingerprint for a key and from the
-- id for everything else. Ids and keys are drawn until they fall into the lane of their account, so any of
-- them alone says where its rows are.
--
-- The server runs as vx_app, which may execute the functions below and nothing else. No role that it can
-- become may update or delete a ledger row.

CREATE FUNCTION vx.lane_of(p_id text) RETURNS smallint
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
  RETURN (get_byte(sha256(convert_to(p_id, 'UTF8')), 0) & 63)::smallint;

CREATE TABLE vx.lanes (
  lane smallint PRIMARY KEY,
  CONSTRAINT lane_in_range CHECK (lane BETWEEN 0 AND 63)
);
INSERT INTO vx.lanes SELECT generate_series(0, 63);

CREATE TABLE vx.plans (
  name text PRIMARY KEY,
  rpm integer NOT NULL,
  max_active_keys integer NOT NULL,
  CONSTRAINT plan_limits_positive CHECK (rpm > 0 AND max_active_keys > 0)
);
INSERT INTO vx.plans VALUES ('free', 20, 2), ('pro', 600, 20), ('scale', 6000, 100);

CREATE TABLE vx.accounts (
  lane smallint NOT NULL,
  id text NOT NULL,
  name text NOT NULL,
  plan text NOT NULL REFERENCES vx.plans,
  balance_micros bigint NOT NULL DEFAULT 0,
  held_micros bigint NOT NULL DEFAULT 0,
  last_seq bigint NOT NULL DEFAULT 0,
  last_hash bytea NOT NULL DEFAULT '\x',
  created_at timestamptz NOT NULL,
  PRIMARY KEY (lane, id),
  CONSTRAINT lane_follows_id CHECK (lane = vx.lane_of(id)),
  CONSTRAINT balance_covers_holds CHECK (0 <= held_micros AND held_micros <= balance_micros),
  -- Below 2^53, so that every JSON reader gets the exact number.
  CONSTRAINT balance_in_range CHECK (balance_micros <= 9000000000000000)
) WITH (fillfactor = 70);
CREATE INDEX accounts_by_id ON vx.accounts (id);

CREATE TABLE vx.keys (
  lane smallint NOT NULL,
  fingerprint bytea NOT NULL,
  id text NOT NULL,
  account_id text NOT NULL,
  name text NOT NULL,
  plan text NOT NULL REFERENCES vx.plans,
  scopes smallint NOT NULL,
  rate_limit_rpm integer,
  visible_start text NOT NULL,
  visible_end text NOT NULL,
  created_at timestamptz NOT NULL,
  expires_at timestamptz,
  revoked_at timestamptz,
  PRIMARY KEY (lane, fingerprint),
  UNIQUE (lane, id),
  FOREIGN KEY (lane, account_id) REFERENCES vx.accounts (lane, id),
  CONSTRAINT fingerprint_is_sha256 CHECK (length(fingerprint) = 32),
  CONSTRAINT lane_follows_fingerprint CHECK (lane = (get_byte(fingerprint, 0) & 63)),
  CONSTRAINT lane_follows_id CHECK (lane = vx.lane_of(id)),
  CONSTRAINT only_four_characters_visible CHECK (length(visible_start) = 4 AND length(visible_end) = 4),
  CONSTRAINT scopes_known CHECK (scopes BETWEEN 1 AND 7),
  CONSTRAINT key_limit_positive CHECK (rate_limit_rpm > 0)
);
CREATE INDEX keys_by_account ON vx.keys (lane, account_id, id);

-- One row per key: the minute it was last used in, and how many calls were admitted in that minute.
CREATE TABLE vx.windows (
  lane smallint NOT NULL,
  fingerprint bytea NOT NULL,
  minute integer NOT NULL,
  used integer NOT NULL,
  -- How many of the calls of the last batch were admitted, and the limit it was decided by.
  granted integer NOT NULL,
  rpm integer NOT NULL,
  last_used_at timestamptz NOT NULL,
  PRIMARY KEY (lane, fingerprint)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);

CREATE TABLE vx.ledger (
  lane smallint NOT NULL,
  account_id text NOT NULL,
  seq bigint NOT NULL,
  id text NOT NULL,
  kind text NOT NULL,
  amount_micros bigint NOT NULL,
  balance_after_micros bigint NOT NULL,
  reason text NOT NULL,
  request_id text NOT NULL,
  key_id text NOT NULL,
  model text NOT NULL,
  input_tokens bigint NOT NULL,
  output_tokens bigint NOT NULL,
  input_micros_per_million_tokens bigint NOT NULL,
  output_micros_per_million_tokens bigint NOT NULL,
  -- Credits and adjustments only: the operator's key that makes them safe to repeat.
  idempotency_key text,
  created_at timestamptz NOT NULL,
  hash bytea NOT NULL,
  PRIMARY KEY (lane, account_id, seq),
  FOREIGN KEY (lane, account_id) REFERENCES vx.accounts (lane, id),
  CONSTRAINT entry_kind_known CHECK (kind IN ('generation', 'credit', 'adjustment')),
  CONSTRAINT entry_has_reason CHECK (reason <> ''),
  CONSTRAINT entry_tokens_not_negative CHECK (input_tokens >= 0 AND output_tokens >= 0)
);
CREATE UNIQUE INDEX ledger_moved_once ON vx.ledger (lane, account_id, idempotency_key)
  WHERE idempotency_key IS NOT NULL;

-- sha256(hash before ‖ row). Each value is written as <bytes>:<value>, so no two rows read the same.
CREATE FUNCTION vx.ledger_hash(p_before bytea, p_row vx.ledger) RETURNS bytea
  LANGUAGE sql STABLE PARALLEL SAFE
  RETURN sha256(p_before || (
    SELECT string_agg(convert_to(octet_length(value) || ':' || value, 'UTF8'), '\x'::bytea ORDER BY n)
    FROM unnest(ARRAY[
      p_row.account_id, p_row.seq::text, p_row.id, p_row.kind, p_row.amount_micros::text,
      p_row.balance_after_micros::text, p_row.reason, p_row.request_id, p_row.key_id, p_row.model,
      p_row.input_tokens::text, p_row.output_tokens::text, p_row.input_micros_per_million_tokens::text,
      p_row.output_micros_per_million_tokens::text, coalesce(p_row.idempotency_key, ''),
      (extract(epoch FROM p_row.created_at) * 1000000)::bigint::text
    ]) WITH ORDINALITY AS f (value, n)
  ));

-- A refusal that the caller is told: the reason is one of the server's error table.
CREATE FUNCTION vx.refuse(p_reason text, p_message text, p_metadata jsonb DEFAULT '{}') RETURNS void
  LANGUAGE plpgsql
AS $$
BEGIN
  RAISE EXCEPTION USING ERRCODE = 'VX000', MESSAGE = p_reason, DETAIL = p_message, HINT = p_metadata::text;
END
$$;

-- Admission -------------------------------------------------------------------------------------------------

-- The keys with these fingerprints, and what admission must know of each; unknown ones are left out.
-- A function of its own, because the two halves of admission want different plans: here one index look-up per
-- key, whatever the tables held when the plan was made; there a hash join.
CREATE FUNCTION vx.keys_with_fingerprints(p_fingerprint bytea[])
  RETURNS TABLE (
    n integer, lane smallint, fingerprint bytea, key_id text, account_id text, key_name text, plan text,
    scopes smallint, rpm integer, visible_start text, visible_end text, expires_at timestamptz,
    revoked_at timestamptz, balance_micros bigint
  )
  LANGUAGE plpgsql STABLE ROWS 256
  SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
BEGIN
  RETURN QUERY
  SELECT a.n::integer, k.lane, k.fingerprint, k.id, k.account_id, k.name, k.plan, k.scopes,
         coalesce(k.rate_limit_rpm, p.rpm), k.visible_start, k.visible_end, k.expires_at, k.revoked_at,
         acc.balance_micros
  FROM unnest(p_fingerprint) WITH ORDINALITY AS a (fingerprint, n)
  JOIN vx.keys k ON k.lane = (get_byte(a.fingerprint, 0) & 63)::smallint AND k.fingerprint = a.fingerprint
  JOIN vx.accounts acc ON acc.lane = k.lane AND acc.id = k.account_id
  JOIN vx.plans p ON p.name = k.plan;
END
$$;

-- Decides a batch of calls, one row per key: how many of them the key's window still has room for, and all that
-- the calls need to know of the key. p_generate, p_read and p_keys say how many calls need each scope and take a
-- slot; a call without its scope takes none. Keys that do not exist are not returned.
-- Windows are locked in the order of the primary key, so batches of several servers never deadlock.
CREATE FUNCTION vx.admit(p_fingerprint bytea[], p_generate integer[], p_read integer[], p_keys integer[])
  RETURNS TABLE (
    n integer, state text, scopes smallint, granted integer, used integer, rpm integer, seconds_left integer,
    key_id text, account_id text, key_name text, plan text, visible_start text, visible_end text,
    balance_micros bigint
  )
  LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp
  -- Planned once: left to itself, PostgreSQL plans for each batch anew, which costs more than the batch.
  SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
  v_now constant timestamptz := clock_timestamp();
  v_minute constant integer := floor(extract(epoch FROM v_now) / 60);
  v_left constant integer := ceil(60 - (extract(epoch FROM v_now) - v_minute * 60));
BEGIN
  -- A crash may forget a fraction of a second of counts, never more: nobody waits for the disk here.
  PERFORM set_config('synchronous_commit', 'off', true);
  RETURN QUERY
  WITH known AS MATERIALIZED (
    SELECT k.*,
           CASE WHEN k.revoked_at IS NOT NULL THEN 'revoked' WHEN k.expires_at <= v_now THEN 'expired'
                ELSE 'active' END AS state,
           least(k.rpm,
             (k.scopes & 1) * p_generate[k.n] + ((k.scopes >> 1) & 1) * p_read[k.n]
             + ((k.scopes >> 2) & 1) * p_keys[k.n]) AS wanted
    FROM vx.keys_with_fingerprints(p_fingerprint) k
  ), counted AS (
    INSERT INTO vx.windows AS w (lane, fingerprint, minute, used, granted, rpm, last_used_at)
    SELECT known.lane, known.fingerprint, v_minute, known.wanted, known.wanted, known.rpm, v_now
    FROM known WHERE known.state = 'active' ORDER BY known.lane, known.fingerprint
    ON CONFLICT ON CONSTRAINT windows_pkey DO UPDATE SET
      -- A window never goes back, whatever the clock does.
      minute = greatest(w.minute, excluded.minute),
      used = CASE WHEN w.minute >= excluded.minute
        THEN w.used + greatest(0, least(excluded.used, excluded.rpm - w.used)) ELSE excluded.used END,
      granted = CASE WHEN w.minute >= excluded.minute
        THEN greatest(0, least(excluded.used, excluded.rpm - w.used)) ELSE excluded.used END,
      rpm = excluded.rpm,
      last_used_at = greatest(w.last_used_at, excluded.last_used_at)
    -- A call that takes no slot is noted once a minute.
    WHERE excluded.used > 0 OR w.minute < excluded.minute
    RETURNING w.lane, w.fingerprint, w.granted, w.used
  )
  SELECT known.n, known.state, known.scopes, coalesce(counted.granted, 0), coalesce(counted.used, 0), known.rpm,
         v_left, known.key_id, known.account_id, known.key_name, known.plan, known.visible_start,
         known.visible_end, known.balance_micros
  FROM known LEFT JOIN counted ON counted.lane = known.lane AND counted.fingerprint = known.fingerprint;
END
$$;

-- Plans -----------------------------------------------------------------------------------------------------

CREATE FUNCTION vx.list_plans() RETURNS SETOF vx.plans
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
  SELECT * FROM vx.plans ORDER BY name
$$;

CREATE FUNCTION vx.put_plan(p_name text, p_rpm integer, p_max_active_keys integer) RETURNS SETOF vx.plans
  LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
  INSERT INTO vx.plans VALUES (p_name, p_rpm, p_max_active_keys)
  ON CONFLICT (name) DO UPDATE SET rpm = excluded.rpm, max_active_keys = excluded.max_active_keys
  RETURNING *
$$;

CREATE FUNCTION vx.require_plan(p_name text) RETURNS vx.plans
  LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_plan vx.plans;
BEGIN
  SELECT * INTO v_plan FROM vx.plans WHERE name = p_name;
  IF NOT FOUND THEN
    PERFORM vx.refuse('invalid_argument', format('there is no plan "%s"', p_name), '{"field":"plan"}');
  END IF;
  RETURN v_plan;
END
$$;

-- Accounts --------------------------------------------------------------------------------------------------

CREATE FUNCTION vx.create_account(p_lane smallint, p_id text, p_name text, p_plan text) RETURNS SETOF vx.accounts
  LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  PERFORM vx.require_plan(p_plan);
  RETURN QUERY INSERT INTO vx.accounts (lane, id, name, plan, created_at)
    VALUES (p_lane, p_id, p_name, p_plan, clock_timestamp()) RETURNING *;
END
$$;

-- Creates the account unless there is any other; of several servers that start at once, one creates it.
CREATE FUNCTION vx.create_first_account(p_lane smallint, p_id text, p_name text, p_plan text) RETURNS SETOF vx.accounts
  LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  LOCK TABLE vx.accounts IN SHARE ROW EXCLUSIVE MODE;
  IF NOT EXISTS (SELECT FROM vx.accounts) THEN
    RETURN QUERY SELECT * FROM vx.create_account(p_lane, p_id, p_name, p_plan);
  END IF;
END
$$;

CREATE FUNCTION vx.get_account(p_lane smallint, p_id text) RETURNS SETOF vx.accounts
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
  SELECT * FROM vx.accounts WHERE lane = p_lane AND id = p_id
$$;

-- Newest first: ids begin with the time they were made at.
CREATE FUNCTION vx.list_accounts(p_before text, p_limit integer) RETURNS SETOF vx.accounts
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
  SELECT * FROM vx.accounts WHERE p_before = '' OR id < p_before ORDER BY id DESC LIMIT p_limit
$$;

-- Serialises everything that must see an account as a whole: money, and the number of its keys.
CREATE FUNCTION vx.lock_account(p_lane smallint, p_id text) RETURNS vx.accounts
  LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_account vx.accounts;
BEGIN
  PERFORM 1 FROM vx.lanes WHERE lane = p_lane FOR UPDATE;
  SELECT * INTO v_account FROM vx.accounts WHERE lane = p_lane AND id = p_id;
  IF NOT FOUND THEN
    PERFORM vx.refuse('not_found', format('There is no account "%s".', p_id));
  END IF;
  RETURN v_account;
END
$$;

-- Refuses when the account already has more active keys on the plan than it allows.
CREATE FUNCTION vx.check_key_cap(p_lane smallint, p_account_id text, p_plan vx.plans) RETURNS void
  LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_active integer;
BEGIN
  SELECT count(*) INTO v_active FROM vx.keys
    WHERE lane = p_lane AND account_id = p_account_id AND plan = p_plan.name
      AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > clock_timestamp());
  IF v_active > p_plan.max_active_keys THEN
    PERFORM vx.refuse('key_limit_reached',
      format('The plan "%s" allows %s active keys. Revoke one that is not used.', p_plan.name, p_plan.max_active_keys),
      jsonb_build_object('plan', p_plan.name, 'max_active_keys', p_plan.max_active_keys::text));
  END IF;
END
$$;

-- Active keys on the former plan move along; keys on a plan of their own keep it.
CREATE FUNCTION vx.set_account_plan(p_lane smallint, p_id text, p_plan text) RETURNS SETOF vx.accounts
  LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_account constant vx.accounts := vx.lock_account(p_lane, p_id);
  v_plan constant vx.plans := vx.require_plan(p_plan);
BEGIN
  UPDATE vx.keys SET plan = p_plan
    WHERE lane = p_lane AND account_id = p_id AND plan = v_account.plan AND plan <> p_plan AND revoked_at IS NULL;
  IF FOUND THEN
    PERFORM vx.check_key_cap(p_lane, p_id, v_plan);
  END IF;
  RETURN QUERY UPDATE vx.accounts SET plan = p_plan WHERE lane = p_lane AND id = p_id RETURNING *;
END
$$;

-- Keys ------------------------------------------------------------------------------------------------------

CREATE TYPE vx.key_view AS (
  id text, account_id text, name text, plan text, scopes smallint, state text, rpm integer, visible_start text,
  visible_end text, created_at timestamptz, revoked_at timestamptz, expires_at timestamptz,
  last_used_at timestamptz
);

-- The keys of an account, newest first, or one key if p_id names it. An empty account stands for any.
CREATE FUNCTION vx.view_keys(p_lane smallint, p_account_id text, p_id text, p_before text, p_limit integer)
  RETURNS SETOF vx.key_view
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
  SELECT k.id, k.account_id, k.name, k.plan, k.scopes,
         CASE WHEN k.revoked_at IS NOT NULL THEN 'revoked'
              WHEN k.expires_at <= clock_timestamp() THEN 'expired' ELSE 'active' END,
         coalesce(k.rate_limit_rpm, p.rpm), k.visible_start, k.visible_end, k.created_at, k.revoked_at,
         k.expires_at, w.last_used_at
  FROM vx.keys k
  JOIN vx.plans p ON p.name = k.plan
  LEFT JOIN vx.windows w ON w.lane = k.lane AND w.fingerprint = k.fingerprint
  WHERE k.lane = p_lane AND (p_account_id = '' OR k.account_id = p_account_id) AND (p_id = '' OR k.id = p_id)
    AND (p_before = '' OR k.id < p_before)
  ORDER BY k.id DESC LIMIT p_limit
$$;

CREATE FUNCTION vx.create_key(
  p_lane smallint, p_account_id text, p_id text, p_fingerprint bytea, p_name text, p_plan text, p_scopes smallint,
  p_rate_limit_rpm integer, p_may_exceed_plan boolean, p_expires_at timestamptz, p_visible_start text,
  p_visible_end text
) RETURNS SETOF vx.key_view
  LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_account constant vx.accounts := vx.lock_account(p_lane, p_account_id);
  v_plan constant vx.plans := vx.require_plan(coalesce(nullif(p_plan, ''), v_account.plan));
  v_now constant timestamptz := clock_timestamp();
BEGIN
  IF p_expires_at <= v_now THEN
    PERFORM vx.refuse('invalid_argument', 'expires_at must lie in the future', '{"field":"expires_at"}');
  END IF;
  IF p_rate_limit_rpm > v_plan.rpm AND NOT p_may_exceed_plan THEN
    PERFORM vx.refuse('invalid_argument',
      format('rate_limit_rpm can be at most %s, the limit of the plan "%s"', v_plan.rpm, v_plan.name),
      '{"field":"rate_limit_rpm"}');
  END IF;
  INSERT INTO vx.keys (lane, fingerprint, id, account_id, name, plan, scopes, rate_limit_rpm, visible_start,
                       visible_end, created_at, expires_at)
    VALUES (p_lane, p_fingerprint, p_id, p_account_id, p_name, v_plan.name, p_scopes, p_rate_limit_rpm,
            p_visible_start, p_visible_end, v_now, p_expires_at);
  PERFORM vx.check_key_cap(p_lane, p_account_id, v_plan);
  RETURN QUERY SELECT * FROM vx.view_keys(p_lane, p_account_id, p_id, '', 1);
END
$$;

-- Final. The first revocation's time stays. An empty account stands for any.
CREATE FUNCTION vx.revoke_key(p_lane smallint, p_account_id text, p_id text) RETURNS SETOF vx.key_view
  LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  UPDATE vx.keys SET revoked_at = clock_timestamp()
    WHERE lane = p_lane AND id = p_id AND (p_account_id = '' OR account_id = p_account_id) AND revoked_at IS NULL;
  RETURN QUERY SELECT * FROM vx.view_keys(p_lane, p_account_id, p_id, '', 1);
END
$$;

CREATE FUNCTION vx.set_key_limit(p_lane smallint, p_id text, p_rate_limit_rpm integer) RETURNS SETOF vx.key_view
  LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  UPDATE vx.keys SET rate_limit_rpm = p_rate_limit_rpm WHERE lane = p_lane AND id = p_id;
  RETURN QUERY SELECT * FROM vx.view_keys(p_lane, '', p_id, '', 1);
END
$$;

-- Money -----------------------------------------------------------------------------------------------------

-- Appends a row to the ledger of a locked account and moves its balance; the only place that does either.
CREATE FUNCTION vx.append_entry(p_account vx.accounts, p_row vx.ledger) RETURNS vx.ledger
  LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_row vx.ledger := p_row;
BEGIN
  v_row.lane := p_account.lane;
  v_row.account_id := p_account.id;
  v_row.seq := p_account.last_seq + 1;
  v_row.balance_after_micros := p_account.balance_micros + p_row.amount_micros;
  v_row.created_at := clock_timestamp();
  v_row.hash := vx.ledger_hash(p_account.last_hash, v_row);
  INSERT INTO vx.ledger SELECT (v_row).*;
  UPDATE vx.accounts
    SET balance_micros = v_row.balance_after_micros, last_seq = v_row.seq, last_hash = v_row.hash
    WHERE lane = p_account.lane AND id = p_account.id;
  RETURN v_row;
END
$$;

-- A credit or an adjustment. The same idempotency key moves the balance once and returns the row it wrote.
CREATE FUNCTION vx.move_balance(
  p_lane smallint, p_account_id text, p_entry_id text, p_kind text, p_amount_micros bigint, p_reason text,
  p_idempotency_key text
) RETURNS SETOF vx.ledger
  LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_account constant vx.accounts := vx.lock_account(p_lane, p_account_id);
  v_row vx.ledger;
BEGIN
  SELECT * INTO v_row FROM vx.ledger
    WHERE lane = p_lane AND account_id = p_account_id AND idempotency_key = p_idempotency_key;
  IF FOUND THEN
    IF (v_row.kind, v_row.amount_micros, v_row.reason) <> (p_kind, p_amount_micros, p_reason) THEN
      PERFORM vx.refuse('idempotency_key_reused',
        format('This idempotency key was used for another movement, ledger row %s.', v_row.seq));
    END IF;
    RETURN NEXT v_row;
    RETURN;
  END IF;
  IF v_account.balance_micros + p_amount_micros < v_account.held_micros THEN
    PERFORM vx.refuse('insufficient_balance', format('The adjustment would take %s micros, but only %s are free: the balance is %s, running calls hold %s.',
        -p_amount_micros, v_account.balance_micros - v_account.held_micros, v_account.balance_micros,
        v_account.held_micros),
      jsonb_build_object('balance_micros', v_account.balance_micros::text,
        'held_micros', v_account.held_micros::text, 'required_micros', (-p_amount_micros)::text));
  END IF;
  IF v_account.balance_micros + p_amount_micros > 9000000000000000 THEN
    PERFORM vx.refuse('invalid_argument', 'a balance can be at most 9,000,000,000.000000', '{"field":"amount_micros"}');
  END IF;
  v_row.id := p_entry_id;
  v_row.kind := p_kind;
  v_row.amount_micros := p_amount_micros;
  v_row.reason := p_reason;
  v_row.idempotency_key := p_idempotency_key;
  v_row.request_id := '';
  v_row.key_id := '';
  v_row.model := '';
  v_row.input_tokens := 0;
  v_row.output_tokens := 0;
  v_row.input_micros_per_million_tokens := 0;
  v_row.output_micros_per_million_tokens := 0;
  RETURN NEXT vx.append_entry(v_account, v_row);
END
$$;

-- Newest first. p_before 0 stands for the newest.
CREATE FUNCTION vx.list_entries(p_lane smallint, p_account_id text, p_before bigint, p_limit integer)
  RETURNS SETOF vx.ledger
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
  SELECT * FROM vx.ledger
  WHERE lane = p_lane AND account_id = p_account_id AND (p_before = 0 OR seq < p_before)
  ORDER BY seq DESC LIMIT p_limit
$$;

-- Audit -----------------------------------------------------------------------------------------------------

-- Recomputes from the rows of one lane what is stored, in one snapshot. One row per difference; the totals
-- come as the first row, with an empty rule.
CREATE FUNCTION vx.audit(p_lane smallint)
  RETURNS TABLE (account_id text, rule text, detail text, accounts bigint, entries bigint, keys bigint, balance_micros numeric)
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
  WITH rows AS (
    SELECT l.account_id, l.seq, l.amount_micros, l.balance_after_micros, l.hash,
           vx.ledger_hash(lag(l.hash, 1, '\x'::bytea) OVER chain, l) AS expected_hash,
           row_number() OVER chain AS expected_seq,
           sum(l.amount_micros) OVER chain AS expected_balance
    FROM vx.ledger l WHERE l.lane = p_lane
    WINDOW chain AS (PARTITION BY l.account_id ORDER BY l.seq)
  ), sums AS (
    SELECT rows.account_id, sum(amount_micros) AS balance, count(*) AS entries,
           (array_agg(hash ORDER BY seq DESC))[1] AS last_hash
    FROM rows GROUP BY rows.account_id
  ), held AS (
    SELECT a.id, a.balance_micros, a.held_micros, a.last_seq, a.last_hash AS stored_hash,
           coalesce(s.balance, 0) AS balance, coalesce(s.entries, 0) AS entries, coalesce(s.last_hash, '\x') AS last_hash
    FROM vx.accounts a LEFT JOIN sums s ON s.account_id = a.id WHERE a.lane = p_lane
  )
  SELECT '', '', '', (SELECT count(*) FROM held), (SELECT count(*) FROM rows),
         (SELECT count(*) FROM vx.keys k WHERE k.lane = p_lane),
         (SELECT coalesce(sum(held.balance_micros), 0) FROM held)
  UNION ALL
  SELECT id, 'balance_equals_ledger', format('balance %s, ledger adds up to %s', balance_micros, balance), 0, 0, 0, 0
  FROM held WHERE balance_micros <> balance
  UNION ALL
  SELECT id, 'held_equals_open_holds', format('held %s, open holds add up to 0', held_micros), 0, 0, 0, 0
  FROM held WHERE held_micros <> 0
  UNION ALL
  SELECT id, 'ledger_complete', format('last row %s, rows %s', last_seq, entries), 0, 0, 0, 0
  FROM held WHERE last_seq <> entries OR stored_hash <> last_hash
  UNION ALL
  SELECT rows.account_id, 'ledger_without_gaps', format('row %s stands at place %s', seq, expected_seq), 0, 0, 0, 0
  FROM rows WHERE seq <> expected_seq
  UNION ALL
  SELECT rows.account_id, 'balance_after_correct',
         format('row %s says %s, rows up to it add up to %s', seq, balance_after_micros, expected_balance), 0, 0, 0, 0
  FROM rows WHERE balance_after_micros <> expected_balance
  UNION ALL
  SELECT rows.account_id, 'ledger_unchanged', format('the hash of row %s does not fit the row and those before it', seq),
         0, 0, 0, 0
  FROM rows WHERE hash <> expected_hash
$$;

CREATE FUNCTION vx.schema_version() RETURNS integer
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
  SELECT max(version) FROM vx.migrations
$$;

REVOKE ALL ON ALL TABLES IN SCHEMA vx FROM PUBLIC;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA vx FROM PUBLIC;
GRANT USAGE ON SCHEMA vx TO vx_app;
GRANT EXECUTE ON FUNCTION
  vx.admit(bytea[], integer[], integer[], integer[]), vx.list_plans(), vx.put_plan(text, integer, integer),
  vx.create_account(smallint, text, text, text), vx.create_first_account(smallint, text, text, text),
  vx.get_account(smallint, text), vx.list_accounts(text, integer),
  vx.set_account_plan(smallint, text, text), vx.view_keys(smallint, text, text, text, integer),
  vx.create_key(smallint, text, text, bytea, text, text, smallint, integer, boolean, timestamptz, text, text),
  vx.revoke_key(smallint, text, text), vx.set_key_limit(smallint, text, integer),
  vx.move_balance(smallint, text, text, text, bigint, text, text),
  vx.list_entries(smallint, text, bigint, integer), vx.audit(smallint), vx.schema_version()
  TO vx_app;
