-- Limits that an operator gave, the audit in pieces, and refusals without a caller's words.

-- Limits ----------------------------------------------------------------------------------------------------

-- Only an operator may give a key more than its plan; what the owner of a key set ends where the plan does, also
-- when the plan is lowered later.
ALTER TABLE vx.keys ADD COLUMN may_exceed_plan boolean NOT NULL DEFAULT false;
-- Nobody noted so far who gave a limit; one above the plan's was an operator's.
UPDATE vx.keys k SET may_exceed_plan = true FROM vx.plans p WHERE p.name = k.plan AND k.rate_limit_rpm > p.rpm;
ALTER TABLE vx.keys ADD CONSTRAINT only_a_limit_exceeds CHECK (rate_limit_rpm IS NOT NULL OR NOT may_exceed_plan);

-- The limit that counts; the only place that says so.
CREATE FUNCTION vx.effective_rpm(p_own integer, p_may_exceed_plan boolean, p_plan integer) RETURNS integer
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN CASE WHEN p_may_exceed_plan THEN p_own ELSE least(p_own, p_plan) END;

-- Counts active keys without passing those that were revoked or have expired.
CREATE INDEX keys_not_revoked ON vx.keys (lane, account_id, plan, coalesce(expires_at, 'infinity'))
  WHERE revoked_at IS NULL;
CREATE INDEX keys_by_revocation ON vx.keys (revoked_at) WHERE revoked_at IS NOT NULL;

CREATE OR REPLACE FUNCTION vx.keys_with_fingerprints(p_fingerprint bytea[])
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
         vx.effective_rpm(k.rate_limit_rpm, k.may_exceed_plan, p.rpm), k.visible_start, k.visible_end, k.expires_at,
         k.revoked_at, acc.balance_micros
  FROM unnest(p_fingerprint) WITH ORDINALITY AS a (fingerprint, n)
  JOIN vx.keys k ON k.lane = (get_byte(a.fingerprint, 0) & 63)::smallint AND k.fingerprint = a.fingerprint
  JOIN vx.accounts acc ON acc.lane = k.lane AND acc.id = k.account_id
  JOIN vx.plans p ON p.name = k.plan;
END
$$;

-- The keys of an account, newest first, or one key if p_id names it. An empty account stands for any.
CREATE OR REPLACE FUNCTION vx.view_keys(p_lane smallint, p_account_id text, p_id text, p_before text, p_limit integer)
  RETURNS SETOF vx.key_view
  LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_ids text[];
BEGIN
  -- Each case has a statement of its own: one for all of them would walk through every key of the lane.
  IF p_id <> '' THEN
    v_ids := ARRAY[p_id];
  ELSIF p_before = '' THEN
    v_ids := ARRAY(SELECT k.id FROM vx.keys k WHERE k.lane = p_lane AND k.account_id = p_account_id
                   ORDER BY k.id DESC LIMIT p_limit);
  ELSE
    v_ids := ARRAY(SELECT k.id FROM vx.keys k WHERE k.lane = p_lane AND k.account_id = p_account_id AND k.id < p_before
                   ORDER BY k.id DESC LIMIT p_limit);
  END IF;
  RETURN QUERY
  SELECT k.id, k.account_id, k.name, k.plan, k.scopes,
         CASE WHEN k.revoked_at IS NOT NULL THEN 'revoked'
              WHEN k.expires_at <= clock_timestamp() THEN 'expired' ELSE 'active' END,
         vx.effective_rpm(k.rate_limit_rpm, k.may_exceed_plan, p.rpm), k.visible_start, k.visible_end, k.created_at,
         k.revoked_at, k.expires_at, w.last_used_at
  FROM vx.keys k
  JOIN vx.plans p ON p.name = k.plan
  LEFT JOIN vx.windows w ON w.lane = k.lane AND w.fingerprint = k.fingerprint
  WHERE k.lane = p_lane AND k.id = ANY (v_ids) AND (p_account_id = '' OR k.account_id = p_account_id)
  ORDER BY k.id DESC;
END
$$;

CREATE OR REPLACE FUNCTION vx.set_key_limit(p_lane smallint, p_id text, p_rate_limit_rpm integer)
  RETURNS SETOF vx.key_view
  LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  UPDATE vx.keys SET rate_limit_rpm = p_rate_limit_rpm, may_exceed_plan = p_rate_limit_rpm IS NOT NULL
    WHERE lane = p_lane AND id = p_id;
  RETURN QUERY SELECT * FROM vx.view_keys(p_lane, '', p_id, '', 1);
END
$$;

-- Refusals --------------------------------------------------------------------------------------------------

-- PostgreSQL logs what is raised, text, detail and hint. So none of them has a word that came with the call: only
-- names of fields, numbers, and what is stored already.

CREATE OR REPLACE FUNCTION vx.require_plan(p_name text) RETURNS vx.plans
  LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_plan vx.plans;
BEGIN
  SELECT * INTO v_plan FROM vx.plans WHERE name = p_name;
  IF NOT FOUND THEN
    PERFORM vx.refuse('invalid_argument', 'there is no such plan', '{"field":"plan"}');
  END IF;
  RETURN v_plan;
END
$$;

CREATE OR REPLACE FUNCTION vx.lock_account(p_lane smallint, p_id text) RETURNS vx.accounts
  LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_account vx.accounts;
BEGIN
  PERFORM 1 FROM vx.lanes WHERE lane = p_lane FOR UPDATE;
  SELECT * INTO v_account FROM vx.accounts WHERE lane = p_lane AND id = p_id;
  IF NOT FOUND THEN
    PERFORM vx.refuse('not_found', 'There is no such account.');
  END IF;
  RETURN v_account;
END
$$;

CREATE OR REPLACE FUNCTION vx.check_key_cap(p_lane smallint, p_account_id text, p_plan vx.plans) RETURNS void
  LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  -- The function itself in the condition would not be looked up in the index.
  v_now constant timestamptz := clock_timestamp();
  v_active integer;
BEGIN
  SELECT count(*) INTO v_active FROM vx.keys
    WHERE lane = p_lane AND account_id = p_account_id AND plan = p_plan.name
      AND revoked_at IS NULL AND coalesce(expires_at, 'infinity') > v_now;
  IF v_active > p_plan.max_active_keys THEN
    PERFORM vx.refuse('key_limit_reached',
      format('The plan "%s" allows %s active keys. Revoke one that is not used.', p_plan.name, p_plan.max_active_keys),
      jsonb_build_object('plan', p_plan.name, 'max_active_keys', p_plan.max_active_keys::text));
  END IF;
END
$$;

CREATE OR REPLACE FUNCTION vx.create_key(
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
  INSERT INTO vx.keys (lane, fingerprint, id, account_id, name, plan, scopes, rate_limit_rpm, may_exceed_plan,
                       visible_start, visible_end, created_at, expires_at)
    VALUES (p_lane, p_fingerprint, p_id, p_account_id, p_name, v_plan.name, p_scopes, p_rate_limit_rpm,
            p_may_exceed_plan AND p_rate_limit_rpm IS NOT NULL, p_visible_start, p_visible_end, v_now, p_expires_at);
  PERFORM vx.check_key_cap(p_lane, p_account_id, v_plan);
  RETURN QUERY SELECT * FROM vx.view_keys(p_lane, p_account_id, p_id, '', 1);
END
$$;

-- The first account -----------------------------------------------------------------------------------------

DROP FUNCTION vx.create_first_account(smallint, text, text, text);

-- An account with a credit and a key, unless there is any account; all of it or nothing. Of several servers that
-- start at once, one creates it. Tells whether it did.
CREATE FUNCTION vx.create_first_account(
  p_lane smallint, p_id text, p_name text, p_plan text, p_entry_id text, p_amount_micros bigint, p_reason text,
  p_key_id text, p_fingerprint bytea, p_scopes smallint, p_visible_start text, p_visible_end text
) RETURNS TABLE (created boolean)
  LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  LOCK TABLE vx.accounts IN SHARE ROW EXCLUSIVE MODE;
  created := NOT EXISTS (SELECT FROM vx.accounts);
  IF created THEN
    PERFORM vx.create_account(p_lane, p_id, p_name, p_plan);
    PERFORM vx.move_balance(p_lane, p_id, p_entry_id, 'credit', p_amount_micros, p_reason, p_reason);
    PERFORM vx.create_key(p_lane, p_id, p_key_id, p_fingerprint, p_name, p_plan, p_scopes, NULL, false, NULL,
                          p_visible_start, p_visible_end);
  END IF;
  RETURN NEXT;
END
$$;

-- Audit -----------------------------------------------------------------------------------------------------

-- What the open holds of each of these accounts add up to; an account without any is left out.
CREATE FUNCTION vx.held_by_accounts(p_lane smallint, p_account_id text[])
  RETURNS TABLE (account_id text, held_micros numeric)
  LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $$
  SELECT ''::text, 0::numeric WHERE false
$$;

DROP FUNCTION vx.audit(smallint);

-- Recomputes one piece of a lane: at most p_limit accounts and p_limit ledger rows, in the order of account and seq.
-- The piece begins behind row p_seq of p_account_id; p_rows, p_sum and p_hash are what was recomputed of that
-- account so far. A p_seq of 2^63 - 1 says that the account is done.
--
-- One row per difference; the totals come as the first row, with an empty rule and where to go on: no account at
-- the end of the lane. An account is held against its rows in the piece that reaches its last one, so both are of
-- one snapshot; the rows before it cannot have changed unless somebody tampered with them.
CREATE FUNCTION vx.audit(
  p_lane smallint, p_account_id text, p_seq bigint, p_rows bigint, p_sum numeric, p_hash bytea, p_limit integer,
  p_max_findings integer
) RETURNS TABLE (
    account_id text, rule text, detail text, accounts bigint, entries bigint, keys bigint, balance_micros numeric,
    next_account_id text, next_seq bigint, next_rows bigint, next_sum numeric, next_hash bytea
  )
  LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp
  -- One walk along the primary keys, whatever the statistics say.
  SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
DECLARE
  c_done constant bigint := 9223372036854775807;
  v_ids constant text[] := ARRAY(
    SELECT a.id FROM vx.accounts a
    WHERE a.lane = p_lane AND a.id >= p_account_id AND (a.id > p_account_id OR p_seq < c_done)
    ORDER BY a.id LIMIT p_limit);
  v_has_more constant boolean := cardinality(v_ids) = p_limit;
  v_end text := v_ids[cardinality(v_ids)];
BEGIN
  IF NOT v_has_more THEN
    -- Rows behind the last account would be rows of nobody.
    v_end := greatest(v_end, (SELECT max(l.account_id) FROM vx.ledger l WHERE l.lane = p_lane));
  END IF;
  RETURN QUERY
  WITH piece AS MATERIALIZED (
    SELECT l.account_id, l.seq, l.amount_micros, l.balance_after_micros, l.hash, l AS entry
    FROM vx.ledger l
    WHERE l.lane = p_lane AND (l.account_id, l.seq) > (p_account_id, p_seq) AND l.account_id <= v_end
    ORDER BY l.account_id, l.seq LIMIT p_limit
  ), rows AS MATERIALIZED (
    SELECT p.account_id, p.seq, p.balance_after_micros, p.hash,
           vx.ledger_hash(lag(p.hash, 1, CASE p.account_id WHEN p_account_id THEN p_hash ELSE '\x'::bytea END)
                          OVER chain, p.entry) AS expected_hash,
           CASE p.account_id WHEN p_account_id THEN p_rows ELSE 0 END + row_number() OVER chain AS expected_seq,
           CASE p.account_id WHEN p_account_id THEN p_sum ELSE 0 END + sum(p.amount_micros) OVER chain
             AS expected_balance
    FROM piece p
    WINDOW chain AS (PARTITION BY p.account_id ORDER BY p.seq)
  ), last_rows AS MATERIALIZED (
    SELECT DISTINCT ON (r.account_id) r.* FROM rows r ORDER BY r.account_id, r.seq DESC
  ), unfinished AS MATERIALIZED (
    -- The piece is full: whether its last account has more rows, nobody has looked.
    SELECT r.* FROM last_rows r WHERE (SELECT count(*) FROM rows) = p_limit ORDER BY r.account_id DESC LIMIT 1
  ), finished AS MATERIALIZED (
    SELECT a.id, a.balance_micros, a.held_micros, a.last_seq, a.last_hash AS stored_hash,
           coalesce(r.expected_seq, carried.rows, 0) AS entries,
           coalesce(r.expected_balance, carried.sum, 0) AS balance,
           coalesce(r.hash, carried.hash, '\x') AS last_hash
    FROM vx.accounts a
    LEFT JOIN last_rows r ON r.account_id = a.id
    LEFT JOIN (SELECT p_account_id, p_rows, p_sum, p_hash) AS carried (id, rows, sum, hash) ON carried.id = a.id
    WHERE a.lane = p_lane AND a.id = ANY (v_ids)
      AND NOT EXISTS (SELECT FROM unfinished u WHERE a.id >= u.account_id)
  ), next AS (
    SELECT u.account_id, u.seq, u.expected_seq AS rows, u.expected_balance AS sum, u.hash FROM unfinished u
    UNION ALL
    SELECT v_end, c_done, 0, 0, '\x' WHERE v_has_more AND NOT EXISTS (SELECT FROM unfinished)
  ), findings AS (
    SELECT f.id AS account_id, 'balance_equals_ledger' AS rule,
           format('balance %s, ledger adds up to %s', f.balance_micros, f.balance) AS detail
    FROM finished f WHERE f.balance_micros <> f.balance
    UNION ALL
    SELECT f.id, 'held_equals_open_holds',
           format('held %s, open holds add up to %s', f.held_micros, coalesce(h.held_micros, 0))
    FROM finished f
    LEFT JOIN vx.held_by_accounts(p_lane, ARRAY(SELECT id FROM finished)) h ON h.account_id = f.id
    WHERE f.held_micros <> coalesce(h.held_micros, 0)
    UNION ALL
    SELECT f.id, 'ledger_complete', format('last row %s, rows %s', f.last_seq, f.entries)
    FROM finished f WHERE f.last_seq <> f.entries OR f.stored_hash <> f.last_hash
    UNION ALL
    SELECT r.account_id, 'ledger_has_account', 'there is no such account'
    FROM last_rows r WHERE NOT EXISTS (SELECT FROM vx.accounts a WHERE a.lane = p_lane AND a.id = r.account_id)
    UNION ALL
    SELECT r.account_id, 'ledger_without_gaps', format('row %s stands at place %s', r.seq, r.expected_seq)
    FROM rows r WHERE r.seq <> r.expected_seq
    UNION ALL
    SELECT r.account_id, 'balance_after_correct',
           format('row %s says %s, rows up to it add up to %s', r.seq, r.balance_after_micros, r.expected_balance)
    FROM rows r WHERE r.balance_after_micros <> r.expected_balance
    UNION ALL
    SELECT r.account_id, 'ledger_unchanged',
           format('the hash of row %s does not fit the row and those before it', r.seq)
    FROM rows r WHERE r.hash <> r.expected_hash
  )
  SELECT '', '', '', (SELECT count(*) FROM finished), (SELECT count(*) FROM rows),
         (SELECT count(*) FROM vx.keys k JOIN finished f ON f.id = k.account_id WHERE k.lane = p_lane),
         (SELECT coalesce(sum(f.balance_micros), 0) FROM finished f), n.account_id, n.seq, n.rows, n.sum, n.hash
  FROM (VALUES (1)) AS one LEFT JOIN next n ON true
  UNION ALL
  (SELECT f.account_id, f.rule, f.detail, 0, 0, 0, 0, NULL, NULL, NULL, NULL, NULL FROM findings f
   LIMIT p_max_findings);
END
$$;

REVOKE ALL ON ALL TABLES IN SCHEMA vx FROM PUBLIC;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA vx FROM PUBLIC;
GRANT EXECUTE ON FUNCTION
  vx.create_first_account(smallint, text, text, text, text, bigint, text, text, bytea, smallint, text, text),
  vx.audit(smallint, text, bigint, bigint, numeric, bytea, integer, integer)
  TO vx_app;
