-- The ledger: credits and other movements of operators, and lists of entries.

-- A credit or an adjustment. The same idempotency key moves the balance once and returns the row it wrote.
-- null: p_expires_at
CREATE OR REPLACE FUNCTION move_balance(
  p_caller caller, p_lane smallint, p_account_id text, p_entry_id text, p_month integer, p_kind text, p_amount_micros bigint,
  p_reason text, p_idempotency_key text, p_expires_at timestamptz DEFAULT NULL, p_is_promotional boolean DEFAULT false
) RETURNS SETOF priced_ledger
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_proven constant keys := prove(p_caller, p_lane);
  v_account constant accounts := require_account(p_lane, p_account_id);
  v_row constant ledger := movement_of_key(p_lane, p_account_id, p_idempotency_key);
  v_expires_at timestamptz;
  v_is_promotional boolean;
BEGIN
  IF v_row.id IS NOT NULL THEN
    SELECT g.expires_at, g.is_promotional INTO v_expires_at, v_is_promotional FROM grants g
      WHERE g.lane = p_lane AND g.account_id = p_account_id AND g.seq = v_row.seq;
    PERFORM refuse('idempotency_key_reused',
      format('This idempotency key was used for another movement, ledger row %s.', v_row.seq))
      WHERE (v_row.kind::text, v_row.amount_micros, v_row.reason, v_row.adjusted_id, coalesce(v_expires_at, 'infinity'),
        coalesce(v_is_promotional, false))
        <> (p_kind, p_amount_micros, p_reason, '', coalesce(p_expires_at, 'infinity'), p_is_promotional);
    RETURN QUERY SELECT * FROM get_entry(p_lane, p_account_id, v_row.id, v_row.month);
    RETURN;
  END IF;
  PERFORM require_open_account(p_lane, p_account_id);
  PERFORM refuse('insufficient_balance', format('The adjustment would take {%s micros}, but only {%s micros} is free: the balance is {%s micros}, running calls hold {%s micros}.',
      -p_amount_micros, v_account.balance_micros - v_account.held_micros, v_account.balance_micros, v_account.held_micros),
    jsonb_build_object('balance_micros', v_account.balance_micros::text, 'held_micros', v_account.held_micros::text,
      'available_micros', (v_account.balance_micros - v_account.held_micros)::text, 'required_micros', (-p_amount_micros)::text,
      'shortage_micros', (-p_amount_micros - v_account.balance_micros + v_account.held_micros)::text))
    WHERE v_account.balance_micros + p_amount_micros < v_account.held_micros;
  PERFORM refuse('invalid_argument', 'a balance can be at most {9000000000000000 micros}', '{"field":"amount_micros"}')
    WHERE v_account.balance_micros + p_amount_micros > 9000000000000000;
  PERFORM post_entries(ARRAY[ROW(p_lane, p_account_id, NULL, p_entry_id, p_month, p_kind, p_amount_micros, p_reason, '',
    '', '', 0, 0, 0, 0, 0, 0, 0, 0, '', '', NULL, 0, 0, 0, '', NULL, '')::entry_item], NULL);
  IF p_expires_at IS NOT NULL OR p_is_promotional THEN
    PERFORM add_grant(p_lane, p_account_id, p_entry_id, v_account.last_seq + 1, p_amount_micros, coalesce(p_expires_at, 'infinity'),
      p_is_promotional);
  END IF;
  INSERT INTO movement_keys (lane, account_id, idempotency_key, seq, month)
    VALUES (p_lane, p_account_id, p_idempotency_key, v_account.last_seq + 1, p_month);
  PERFORM write_event(p_lane, p_account_id, p_kind || '.posted', jsonb_build_object('entry_id', p_entry_id,
    'amount_micros', p_amount_micros, 'balance_after_micros', v_account.balance_micros + p_amount_micros, 'reason', p_reason));
  PERFORM log_change(p_caller, p_lane, p_account_id, p_account_id);
  RETURN QUERY SELECT * FROM get_entry(p_lane, p_account_id, p_entry_id, p_month);
END
$$;

-- The ledger row that an idempotency key of a credit, an adjustment or a refund wrote; NULL if it wrote none. The caller holds
-- the lock of the lane, and refuses a request that differs from the row.
CREATE OR REPLACE FUNCTION movement_of_key(p_lane smallint, p_account_id text, p_idempotency_key text) RETURNS ledger
  LANGUAGE plpgsql STABLE
AS $$
DECLARE
  v_key movement_keys;
  v_row ledger;
BEGIN
  SELECT m.* INTO v_key FROM movement_keys m
    WHERE m.lane = p_lane AND m.account_id = p_account_id AND m.idempotency_key = p_idempotency_key;
  IF NOT FOUND THEN
    RETURN NULL;
  END IF;
  SELECT l.* INTO v_row FROM ledger l
    WHERE l.lane = p_lane AND l.account_id = p_account_id AND l.seq = v_key.seq AND l.month = v_key.month;
  PERFORM refuse('idempotency_key_reused', format('This idempotency key was used for ledger row %s, which is archived.', v_key.seq))
    WHERE NOT FOUND;
  RETURN v_row;
END
$$;

-- Appends a ledger row about a payment, or one that corrects a charge, and returns its id and month. The caller holds the lock of
-- the lane.
CREATE OR REPLACE FUNCTION post_movement(p_lane smallint, p_account_id text, p_kind entry_kind, p_micros bigint, p_reason text,
  p_adjusted_id text DEFAULT '', OUT id text, OUT month integer)
  LANGUAGE plpgsql
AS $$
DECLARE
  v_now constant timestamptz := clock_timestamp();
BEGIN
  id := 'led' || substr(event_id(p_lane, v_now), 4);
  month := (SELECT t.month FROM day_and_month(v_now) t);
  PERFORM post_entries(ARRAY[ROW(p_lane, p_account_id, NULL, id, month, p_kind, p_micros, p_reason, '', '', '', 0, 0, 0, 0, 0, 0,
    0, 0, '', '', NULL, 0, 0, 0, '', NULL, p_adjusted_id)::entry_item], NULL);
END
$$;

-- Takes what an account owes for reversed payments from its balance, as far as no running call holds it. p_reason describes the
-- ledger row; empty for a later payment of what is owed. The caller holds the lock of the lane.
CREATE OR REPLACE FUNCTION take_owed(p_lane smallint, p_account_id text, p_reason text) RETURNS void
  LANGUAGE plpgsql
AS $$
DECLARE
  v_taken bigint;
BEGIN
  SELECT least(a.owed_micros, a.balance_micros - a.held_micros) INTO STRICT v_taken FROM accounts a
    WHERE a.lane = p_lane AND a.id = p_account_id;
  IF v_taken > 0 THEN
    UPDATE accounts SET owed_micros = owed_micros - v_taken WHERE lane = p_lane AND id = p_account_id;
    PERFORM post_movement(p_lane, p_account_id, 'refund', -v_taken, coalesce(nullif(p_reason, ''), 'Paid what was owed for reversed payments'));
  END IF;
END
$$;

-- The ledger row with this id, if the account has it. An empty account matches every account.
CREATE OR REPLACE FUNCTION get_entry(p_lane smallint, p_account_id text, p_id text, p_month integer) RETURNS SETOF priced_ledger
  LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT
  -- One plan for all partitions, of which a call reads one.
  SET plan_cache_mode = force_generic_plan
AS $$
BEGIN
  RETURN QUERY SELECT l.* FROM priced_ledger l
    WHERE l.lane = p_lane AND l.id = p_id AND l.month = p_month AND p_account_id IN ('', l.account_id);
END
$$;

-- A page of an account's ledger, newest first; a p_before of 0 means the first page. Numbers have no gaps, so the page is known
-- before it is read: without an order and a limit, each partition is searched once, and planning takes a tenth of the time.
CREATE OR REPLACE FUNCTION list_entries(p_lane smallint, p_account_id text, p_before bigint, p_limit integer)
  RETURNS SETOF priced_ledger
  LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT
  -- Plans for all partitions are made once for a session.
  SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
DECLARE
  v_last constant bigint := (SELECT a.last_seq FROM accounts a WHERE a.lane = p_lane AND a.id = p_account_id);
  v_end constant bigint := CASE WHEN p_before BETWEEN 1 AND v_last THEN p_before ELSE v_last + 1 END;
BEGIN
  RETURN QUERY SELECT p.* FROM (
      SELECT l.* FROM priced_ledger l
      WHERE l.lane = p_lane AND l.account_id = p_account_id AND l.seq >= v_end - p_limit AND l.seq < v_end
      OFFSET 0
    ) p ORDER BY p.seq DESC;
END
$$;

-- The entries of all lanes before the one with the id p_before, which was created in p_month, newest first. An empty p_before
-- means from the start. Ids sort by time. Only the months since a year before are read.
-- null: p_month
CREATE OR REPLACE FUNCTION list_recent_entries(p_before text, p_month integer, p_limit integer) RETURNS SETOF priced_ledger
  LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT
  SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
DECLARE
  -- The clock of a server can be ahead of this one.
  c_next_month constant integer := (SELECT t.month + 1 FROM day_and_month(clock_timestamp()) t);
  v_before constant text := CASE p_before WHEN '' THEN 'led_' || repeat('z', 26) ELSE p_before END;
  v_month integer := coalesce(p_month, c_next_month);
  v_missing integer := p_limit;
  v_found integer;
BEGIN
  LOOP
    -- The newest entries are in the lanes whose own newest entry is latest.
    RETURN QUERY
    WITH newest AS MATERIALIZED (
      SELECT s.lane, n.id FROM (SELECT generate_series(0, 1023)::smallint AS lane) s
      CROSS JOIN LATERAL (
        SELECT l.id FROM ledger l WHERE l.lane = s.lane AND l.month = v_month AND l.id < v_before
        ORDER BY l.id DESC LIMIT 1
      ) n ORDER BY n.id DESC LIMIT v_missing
    )
    SELECT e.* FROM newest n CROSS JOIN LATERAL (
      SELECT l.* FROM priced_ledger l WHERE l.lane = n.lane AND l.month = v_month AND l.id < v_before
        -- If these lanes alone fill the page, older entries are not on it.
        AND l.id >= (SELECT CASE WHEN count(*) = v_missing THEN min(m.id) ELSE '' END FROM newest m)
      ORDER BY l.id DESC LIMIT v_missing
    ) e ORDER BY e.id DESC LIMIT v_missing;
    GET DIAGNOSTICS v_found = ROW_COUNT;
    v_missing := v_missing - v_found;
    v_month := v_month - 1;
    EXIT WHEN v_missing <= 0 OR v_month < c_next_month - 12;
  END LOOP;
END
$$;

-- The entries of an account from p_first until before p_end that match the filters, newest first. An empty filter matches
-- all. Movements and the entries of a key have indexes; otherwise each entry of the range is read.
CREATE OR REPLACE FUNCTION filter_entries(
  p_lane smallint, p_account_id text, p_kind text, p_key_id text, p_model text, p_first bigint, p_end bigint,
  p_limit integer
) RETURNS SETOF priced_ledger
  LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT
  -- Plans for all partitions are made once for a session.
  SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off
AS $$
BEGIN
  IF p_kind NOT IN ('', 'generation') THEN
    RETURN QUERY SELECT l.* FROM priced_ledger l
      WHERE l.lane = p_lane AND l.account_id = p_account_id AND l.seq >= p_first AND l.seq < p_end
        AND l.kind <> 'generation' AND l.kind = p_kind::entry_kind AND p_key_id IN ('', l.key_id)
        AND p_model IN ('', l.model)
      ORDER BY l.seq DESC LIMIT p_limit;
  ELSIF p_key_id <> '' THEN
    -- Only the index for keys has this order. With an equal key_id, the primary key would have it too: in large partitions,
    -- PostgreSQL estimates the same cost, and then reads each entry of the account.
    RETURN QUERY SELECT l.* FROM priced_ledger l
      WHERE l.lane = p_lane AND l.account_id = p_account_id AND (l.key_id, l.seq) >= (p_key_id, p_first)
        AND (l.key_id, l.seq) < (p_key_id, p_end) AND l.kind = 'generation' AND p_model IN ('', l.model)
      ORDER BY l.key_id DESC, l.seq DESC LIMIT p_limit;
  ELSE
    RETURN QUERY SELECT l.* FROM priced_ledger l
      WHERE l.lane = p_lane AND l.account_id = p_account_id AND l.seq >= p_first AND l.seq < p_end
        AND (p_kind = '' OR l.kind = 'generation') AND p_model IN ('', l.model)
      ORDER BY l.seq DESC LIMIT p_limit;
  END IF;
END
$$;

-- The numbers of the entries of an account from one time until before another: from first_seq until before end_seq. NULL
-- means no limit. The range begins after the archived entries.
-- null: p_from, p_to
CREATE OR REPLACE FUNCTION ledger_range(p_lane smallint, p_account_id text, p_from timestamptz, p_to timestamptz)
  RETURNS TABLE (first_seq bigint, end_seq bigint)
  LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT
  SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
DECLARE
  v_last bigint := coalesce((SELECT a.last_seq FROM accounts a WHERE a.lane = p_lane AND a.id = p_account_id), 0);
BEGIN
  PERFORM require_lane(p_lane);
  first_seq := CASE WHEN p_from IS NULL THEN
      1 + coalesce((SELECT h.seq FROM archived_heads(p_lane, p_account_id, p_account_id) h), 0)
    ELSE seq_at(p_lane, p_account_id, p_from, v_last) END;
  end_seq := CASE WHEN p_to IS NULL THEN v_last + 1 ELSE seq_at(p_lane, p_account_id, p_to, v_last) END;
  RETURN NEXT;
END
$$;

-- The number of the first entry of an account at this time or later, at most p_last + 1; archived entries count as older. Entries
-- are in the order of their times, so the primary key finds it in a few steps, each at the first partition that has the entry.
CREATE OR REPLACE FUNCTION seq_at(p_lane smallint, p_account_id text, p_time timestamptz, p_last bigint) RETURNS bigint
  LANGUAGE plpgsql STABLE
AS $$
DECLARE
  v_low bigint := 1;
  v_high bigint := p_last + 1;
  v_middle bigint;
BEGIN
  WHILE v_low < v_high LOOP
    v_middle := (v_low + v_high) / 2;
    IF (SELECT l.created_at FROM ledger l
        WHERE l.lane = p_lane AND l.account_id = p_account_id AND l.seq = v_middle LIMIT 1) >= p_time THEN
      v_high := v_middle;
    ELSE
      v_low := v_middle + 1;
    END IF;
  END LOOP;
  RETURN v_low;
END
$$;

-- The lines of the statement of an account from one time until before another, both on a quarter of an hour: the balances, the
-- charges by model, and the other entries, of which those after the first 1,000 are added up by kind. No lines if entries of the
-- time are archived.
-- null: created_at
-- kind: opening_balance | credit | topup | refund | adjustment | expiry | generation | closing_balance
CREATE OR REPLACE FUNCTION get_statement(p_lane smallint, p_account_id text, p_from timestamptz, p_to timestamptz)
  RETURNS TABLE (
    kind text, id text, created_at timestamptz, reason text, model text, entries bigint, input bigint, output bigint, amount_micros bigint
  )
  LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT
  -- Without the last setting, PostgreSQL sorts all rows of the month to group them.
  SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off
AS $$
DECLARE
  c_max_lines constant integer := 1000;
  v_last constant bigint := (SELECT a.last_seq FROM accounts a WHERE a.lane = p_lane AND a.id = p_account_id);
  v_first constant bigint := seq_at(p_lane, p_account_id, p_from, v_last);
  v_end constant bigint := seq_at(p_lane, p_account_id, p_to, v_last);
  -- As integers, so that the primary key of the sums finds them.
  v_first_quarter constant integer := extract(epoch FROM p_from) / 900;
  v_end_quarter constant integer := extract(epoch FROM p_to) / 900;
  v_archived archived_ledger;
  -- The first entry that is not a line of its own.
  v_rest bigint;
BEGIN
  SELECT h.* INTO v_archived FROM archived_heads(p_lane, p_account_id, p_account_id) h;
  IF to_timestamp(v_archived.end_quarter * 900.0) > p_from THEN
    RETURN;
  END IF;
  RETURN QUERY SELECT 'opening_balance', '', NULL::timestamptz, '', '', 0::bigint, 0::bigint, 0::bigint,
    coalesce((SELECT l.balance_after_micros FROM ledger l
      WHERE l.lane = p_lane AND l.account_id = p_account_id AND l.seq = v_first - 1), v_archived.balance_micros, 0);
  v_rest := coalesce((SELECT l.seq FROM ledger l
    WHERE l.lane = p_lane AND l.account_id = p_account_id AND l.kind <> 'generation' AND l.seq >= v_first AND l.seq < v_end
    ORDER BY l.seq OFFSET c_max_lines LIMIT 1), v_end);
  RETURN QUERY SELECT l.kind::text, l.id, l.created_at, l.reason, '', 1::bigint, 0::bigint, 0::bigint, l.amount_micros FROM ledger l
    WHERE l.lane = p_lane AND l.account_id = p_account_id AND l.kind <> 'generation' AND l.seq >= v_first AND l.seq < v_rest
    ORDER BY l.seq;
  RETURN QUERY SELECT l.kind::text, '', NULL::timestamptz, '', '', count(*), 0::bigint, 0::bigint, sum(l.amount_micros)::bigint FROM ledger l
    WHERE l.lane = p_lane AND l.account_id = p_account_id AND l.kind <> 'generation' AND l.seq >= v_rest AND l.seq < v_end
    GROUP BY l.kind ORDER BY min(l.seq);
  RETURN QUERY SELECT 'generation', '', NULL::timestamptz, '', u.model, sum(u.requests)::bigint,
    sum(u.input + u.cached_input + u.cache_write)::bigint, sum(u.output + u.reasoning)::bigint, -sum(u.cost_micros)::bigint
    FROM usage_quarters u
    WHERE u.lane = p_lane AND u.account_id = p_account_id AND u.quarter >= v_first_quarter AND u.quarter < v_end_quarter
    GROUP BY u.model ORDER BY u.model;
  RETURN QUERY SELECT 'closing_balance', '', NULL::timestamptz, '', '', 0::bigint, 0::bigint, 0::bigint,
    coalesce((SELECT l.balance_after_micros FROM ledger l
      WHERE l.lane = p_lane AND l.account_id = p_account_id AND l.seq = v_end - 1), v_archived.balance_micros, 0);
END
$$;
