-- Partitions of the ledger: one for each month, which is moved to a file once it is old.

-- Creates the partitions of this month and of the three months ahead that do not exist. A month that has rows in
-- ledger_other_months keeps them there until move_other_month moves them.
CREATE OR REPLACE FUNCTION create_ledger_partitions() RETURNS TABLE (created text)
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
  -- Reads of the ledger have locks that a new partition needs, and others queue behind it.
  SET lock_timeout = '1s'
AS $$
DECLARE
  c_month constant integer := (SELECT t.month FROM day_and_month(clock_timestamp()) t);
BEGIN
  FOR v_month IN c_month .. c_month + 3 LOOP
    CONTINUE WHEN EXISTS (SELECT 1 FROM ledger_partitions() p
        WHERE v_month >= coalesce(p.first_month, v_month) AND v_month < p.end_month)
      OR EXISTS (SELECT 1 FROM ledger_other_months l WHERE l.month = v_month);
    created := 'ledger_' || to_char(make_date(1970 + v_month / 12, v_month % 12 + 1, 1), 'YYYY_MM');
    BEGIN
      EXECUTE format('CREATE TABLE %I (LIKE ledger INCLUDING CONSTRAINTS INCLUDING INDEXES)', created);
      EXECUTE format('ALTER TABLE ledger ATTACH PARTITION %I FOR VALUES FROM (%s) TO (%s)', created, v_month, v_month + 1);
      RETURN NEXT;
    EXCEPTION WHEN duplicate_table OR unique_violation THEN
      -- Another server creates it.
      NULL;
    END;
  END LOOP;
END
$$;

-- The partitions of the ledger and their months since January 1970: from first_month, or without a lower bound, until before
-- end_month. Rows of other months are in ledger_other_months.
CREATE OR REPLACE FUNCTION ledger_partitions() RETURNS TABLE (name text, first_month integer, end_month integer)
  LANGUAGE sql STABLE SET search_path FROM CURRENT
AS $$
  SELECT c.relname::text, substring(b.bound FROM 'FROM \(([0-9]+)\)')::integer,
         substring(b.bound FROM 'TO \(([0-9]+)\)')::integer
  FROM pg_inherits i
  JOIN pg_class c ON c.oid = i.inhrelid
  CROSS JOIN LATERAL pg_get_expr(c.relpartbound, c.oid) AS b (bound)
  WHERE i.inhparent = 'ledger'::regclass AND b.bound <> 'DEFAULT'
  ORDER BY 3
$$;

-- The months of ledger_other_months that should have a partition. Those before the end of the last archive should not: their
-- rows are in the next archive.
CREATE OR REPLACE FUNCTION months_without_partition() RETURNS TABLE (month integer, entries bigint)
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT
AS $$
  SELECT l.month, count(*) FROM ledger_other_months l
  WHERE l.month > coalesce((SELECT max(a.month) FROM ledger_archives a WHERE a.removed_at IS NOT NULL), -1)
  GROUP BY l.month ORDER BY l.month
$$;

-- Creates the partition of the first month that has rows in ledger_other_months, and moves them there. Only the owner may execute
-- it. The caller sets lock_timeout: reads of the ledger have locks that a new partition needs, and others queue behind it.
CREATE OR REPLACE FUNCTION move_other_month() RETURNS TABLE (partition text, entries bigint)
  LANGUAGE plpgsql SET search_path FROM CURRENT
AS $$
DECLARE
  v_month integer;
  v_copied bigint;
  v_late bigint;
BEGIN
  IF NOT EXISTS (SELECT FROM months_without_partition()) THEN
    RETURN;
  END IF;
  -- Excludes the removal of archived entries, and others who create partitions, but no call.
  LOCK TABLE ONLY ledger IN SHARE UPDATE EXCLUSIVE MODE;
  SELECT m.month INTO v_month FROM months_without_partition() m LIMIT 1;
  IF NOT FOUND THEN
    RETURN;
  END IF;
  partition := 'ledger_' || to_char(make_date(1970 + v_month / 12, v_month % 12 + 1, 1), 'YYYY_MM');
  -- With the check, ATTACH PARTITION does not read the rows.
  EXECUTE format('CREATE TABLE %I (LIKE ledger INCLUDING CONSTRAINTS INCLUDING INDEXES,
    CONSTRAINT one_month CHECK (month IS NOT NULL AND month = %s))', partition, v_month);
  -- Calls continue meanwhile. Entries never change, so only those that were added since are copied under the lock.
  EXECUTE format('INSERT INTO %I SELECT l.* FROM ledger_other_months l WHERE l.month = %s', partition, v_month);
  GET DIAGNOSTICS v_copied = ROW_COUNT;
  LOCK TABLE ledger_other_months IN ACCESS EXCLUSIVE MODE;
  EXECUTE format('INSERT INTO %1$I SELECT l.* FROM ledger_other_months l WHERE l.month = %2$s
    AND NOT EXISTS (SELECT 1 FROM %1$I p WHERE p.lane = l.lane AND p.id = l.id)', partition, v_month);
  GET DIAGNOSTICS v_late = ROW_COUNT;
  DELETE FROM ledger_other_months l WHERE l.month = v_month;
  GET DIAGNOSTICS entries = ROW_COUNT;
  IF entries <> v_copied + v_late THEN
    RAISE EXCEPTION '% entries of % were copied, and % deleted', v_copied + v_late, partition, entries;
  END IF;
  EXECUTE format('ALTER TABLE ledger ATTACH PARTITION %I FOR VALUES FROM (%s) TO (%s)', partition, v_month, v_month + 1);
  EXECUTE format('ALTER TABLE %I DROP CONSTRAINT one_month', partition);
  RETURN NEXT;
END
$$;

-- The partitions of the ledger, oldest first, whose months ended at least two days ago: no call that began in them runs, and
-- the replies that are kept for their idempotency keys expired.
CREATE OR REPLACE FUNCTION archivable_partitions() RETURNS TABLE (name text, last_month integer)
  LANGUAGE sql STABLE SET search_path FROM CURRENT
AS $$
  SELECT p.name, p.end_month - 1 FROM ledger_partitions() p, day_and_month(clock_timestamp() - interval '2 days') t
  WHERE p.end_month <= t.month ORDER BY p.end_month
$$;

-- Selects the entries of a lane for the archive of this month: those of each account up to the last one that was created before
-- the end of the month, after the previous archive. Returns their number.
CREATE OR REPLACE FUNCTION add_archived_heads(p_lane smallint, p_month integer) RETURNS TABLE (entries bigint)
  LANGUAGE plpgsql SET search_path FROM CURRENT
  SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
DECLARE
  c_end constant timestamptz := make_timestamptz(1970 + (p_month + 1) / 12, (p_month + 1) % 12 + 1, 1, 0, 0, 0, 'UTC');
  v_last_seq bigint;
  r record;
BEGIN
  entries := 0;
  FOR r IN
    SELECT a.id, a.last_seq, coalesce(h.seq, 0) AS seq, coalesce(h.usage_fingerprint, 0) AS fingerprint
    FROM accounts a LEFT JOIN archived_heads(p_lane, '', NULL) h ON h.account_id = a.id
    WHERE a.lane = p_lane AND a.last_seq > coalesce(h.seq, 0)
  LOOP
    v_last_seq := seq_at(p_lane, r.id, c_end, r.last_seq) - 1;
    CONTINUE WHEN v_last_seq <= r.seq;
    INSERT INTO archived_ledger
    SELECT p_lane, r.id, p_month, extract(epoch FROM c_end) / 900, v_last_seq, l.balance_after_micros, l.hash,
           r.fingerprint + (
             SELECT coalesce(sum(e.fingerprint), 0) FROM usage_of_entries(p_lane, r.id, r.seq, v_last_seq - r.seq) e
             WHERE e.account_id = r.id)
    FROM ledger l WHERE l.lane = p_lane AND l.account_id = r.id AND l.seq = v_last_seq;
    IF NOT FOUND THEN
      RAISE EXCEPTION 'the ledger of % has no row %', r.id, v_last_seq;
    END IF;
    entries := entries + v_last_seq - r.seq;
  END LOOP;
  RETURN NEXT;
END
$$;

-- The entries of a lane that the archive of this month has, as lines of JSON in the order of account and number: at most
-- p_limit, after entry p_seq of p_account_id. Also returns whether each charge is the cost of its usage at its prices.
CREATE OR REPLACE FUNCTION entries_to_archive(
  p_lane smallint, p_month integer, p_account_id text, p_seq bigint, p_limit integer
) RETURNS TABLE (account_id text, seq bigint, line text, is_charge_right boolean)
  LANGUAGE sql STABLE SET search_path FROM CURRENT
  SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
  SELECT e.account_id, e.seq,
         json_build_object('lane', e.lane, 'account_id', e.account_id, 'seq', e.seq, 'id', e.id, 'month', e.month, 'kind',
           e.kind, 'amount_micros', e.amount_micros, 'balance_after_micros', e.balance_after_micros, 'reason', e.reason,
           'request_id', e.request_id, 'key_id', e.key_id, 'model', e.model, 'price_version', e.price_version, 'input',
           e.input, 'cached_input', e.cached_input, 'cache_write', e.cache_write, 'output', e.output, 'reasoning',
           e.reasoning, 'images', e.images, 'image_tokens', e.image_tokens, 'user_id', e.user_id, 'trace_id', e.trace_id,
           'created_at', to_char(e.created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), 'hash_version',
           e.hash_version, 'cache_write_1h', e.cache_write_1h, 'price_tier', e.price_tier,
           'price_list_version', e.price_list_version, 'upstream', e.upstream, 'upstream_cost_micros', e.upstream_cost_micros, 'adjusted_id', e.adjusted_id, 'hash', encode(e.hash, 'hex'))::text,
         e.kind <> 'generation' OR coalesce(r.above_input_tokens = e.price_tier
           AND (a.version IS NOT NULL OR e.price_list_version = 0) AND e.amount_micros
           = -charge_of(e.input, e.cached_input, e.cache_write, e.cache_write_1h, e.output, e.reasoning, e.images,
             ROW(r.*)::price_rates, a.discount), false)
  FROM archived_ledger h
  CROSS JOIN LATERAL (
    SELECT l.* FROM ledger l
    WHERE l.lane = p_lane AND l.account_id = h.account_id AND l.seq <= h.seq
      AND l.seq > greatest(CASE h.account_id WHEN p_account_id THEN p_seq END,
        (SELECT max(b.seq) FROM archived_ledger b
         WHERE b.lane = p_lane AND b.account_id = h.account_id AND b.month < p_month), 0)
    ORDER BY l.seq LIMIT p_limit
  ) e
  LEFT JOIN price_versions v ON v.model = e.model AND v.version = e.price_version
  LEFT JOIN account_prices a ON a.lane = p_lane AND a.account_id = e.account_id AND a.version = e.price_list_version
    AND a.model IN ('', e.model)
  LEFT JOIN LATERAL rates_of(coalesce(a.rates, v.rates), e.input + e.cached_input + e.cache_write) r ON true
  WHERE h.lane = p_lane AND h.month = p_month AND h.account_id >= p_account_id
  ORDER BY h.account_id, e.seq LIMIT p_limit
$$;

-- The accounts that the archive of this month has entries of, in the order of its file, at most p_limit after p_account_id of
-- p_lane: their last entries in earlier archives, and in this one.
CREATE OR REPLACE FUNCTION heads_of_archive(p_month integer, p_lane smallint, p_account_id text, p_limit integer)
  RETURNS TABLE (lane smallint, account_id text, before_seq bigint, before_balance_micros bigint, before_hash bytea, seq bigint,
    balance_micros bigint, hash bytea)
  LANGUAGE sql STABLE SET search_path FROM CURRENT
  SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
  SELECT h.lane, h.account_id, coalesce(b.seq, 0), coalesce(b.balance_micros, 0), coalesce(b.hash, '\x'), h.seq,
         h.balance_micros, h.hash
  FROM archived_ledger h
  LEFT JOIN LATERAL (SELECT o.* FROM archived_ledger o
    WHERE o.lane = h.lane AND o.account_id = h.account_id AND o.month < p_month ORDER BY o.month DESC LIMIT 1) b ON true
  WHERE h.month = p_month AND (h.lane, h.account_id) > (p_lane, p_account_id)
  ORDER BY h.lane, h.account_id LIMIT p_limit
$$;

-- The last archived entry of each account of a lane from p_first to p_last; without p_last, to the end of the lane.
CREATE OR REPLACE FUNCTION archived_heads(p_lane smallint, p_first text, p_last text) RETURNS SETOF archived_ledger
  LANGUAGE plpgsql STABLE
AS $$
DECLARE
  v_month constant integer := (SELECT max(a.month) FROM ledger_archives a WHERE a.removed_at IS NOT NULL);
BEGIN
  IF v_month IS NULL THEN
    RETURN;
  END IF;
  RETURN QUERY SELECT DISTINCT ON (h.account_id) h.* FROM archived_ledger h
    WHERE h.lane = p_lane AND h.account_id >= p_first AND (p_last IS NULL OR h.account_id <= p_last)
      AND h.month <= v_month
    ORDER BY h.account_id, h.month DESC;
END
$$;

-- Records a file whose entries are verified, so that they may be removed.
CREATE OR REPLACE FUNCTION add_archive(p_month integer, p_file text, p_sha256 bytea, p_entries bigint) RETURNS void
  LANGUAGE sql SET search_path FROM CURRENT
AS $$
  INSERT INTO ledger_archives (month, file, sha256, entries) VALUES (p_month, p_file, p_sha256, p_entries)
$$;

-- The archives, oldest first. The entries of one that is not removed are still in the ledger.
-- null: removed_at
CREATE OR REPLACE FUNCTION list_archives()
  RETURNS TABLE (month integer, file text, sha256 bytea, entries bigint, removed_at timestamptz)
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT
AS $$
  SELECT a.month, a.file, a.sha256, a.entries, a.removed_at FROM ledger_archives a ORDER BY a.month
$$;

-- Deletes what interrupted archives wrote here. Their entries are still in the ledger.
CREATE OR REPLACE FUNCTION forget_unfinished_archives() RETURNS void
  LANGUAGE sql SET search_path FROM CURRENT
AS $$
  DELETE FROM ledger_archives a WHERE a.removed_at IS NULL;
  DELETE FROM archived_ledger h WHERE h.month > coalesce((SELECT max(a.month) FROM ledger_archives a), -1);
$$;

-- Drops the partition whose last month this is, after its file was verified. In one transaction: from then on, the ledger
-- continues the archive. An error changes nothing.
CREATE OR REPLACE FUNCTION remove_archived_partition(p_month integer) RETURNS void
  LANGUAGE plpgsql SET search_path FROM CURRENT
  SET lock_timeout = '5s'
AS $$
DECLARE
  v_partition record;
  v_archive ledger_archives;
  v_entries bigint;
  v_later bigint;
  v_elsewhere bigint;
BEGIN
  SELECT a.* INTO STRICT v_archive FROM ledger_archives a WHERE a.month = p_month AND a.removed_at IS NULL;
  SELECT p.* INTO STRICT v_partition FROM ledger_partitions() p WHERE p.end_month = p_month + 1;
  -- Reads go on, and so do writes of other months.
  EXECUTE format('LOCK TABLE %I IN SHARE ROW EXCLUSIVE MODE', v_partition.name);
  -- A call that began in the month and was charged after its end, or after the clock of a server was wrong.
  EXECUTE format('CREATE TEMPORARY TABLE later_entries ON COMMIT DROP AS SELECT l.* FROM %I l
    LEFT JOIN archived_ledger h ON h.lane = l.lane AND h.account_id = l.account_id AND h.month = %s
    WHERE l.seq > coalesce(h.seq, 0)', v_partition.name, p_month);
  GET DIAGNOSTICS v_later = ROW_COUNT;
  -- The same at the end of an earlier month, or calls of a server whose clock was ahead.
  EXECUTE format('CREATE TEMPORARY TABLE entries_elsewhere ON COMMIT DROP AS
    SELECT l.lane, l.account_id, l.seq, l.month FROM archived_ledger h
    JOIN ledger l ON l.lane = h.lane AND l.account_id = h.account_id AND l.seq <= h.seq
    WHERE h.month = %s AND (l.month < %s OR l.month >= %s)', p_month, coalesce(v_partition.first_month, 0),
    v_partition.end_month);
  GET DIAGNOSTICS v_elsewhere = ROW_COUNT;
  EXECUTE format('SELECT count(*) FROM %I', v_partition.name) INTO v_entries;
  IF v_entries - v_later + v_elsewhere <> v_archive.entries THEN
    RAISE EXCEPTION 'the ledger has % entries of the archive, its file has %', v_entries - v_later + v_elsewhere,
      v_archive.entries;
  END IF;
  -- Nothing waits here, so no call queues behind this lock, and there is no deadlock with a write of this month.
  FOR v_attempt IN 1..200 LOOP
    BEGIN
      LOCK TABLE ledger IN ACCESS EXCLUSIVE MODE NOWAIT;
      EXIT;
    EXCEPTION WHEN lock_not_available THEN
      IF v_attempt = 200 THEN
        RAISE;
      END IF;
      PERFORM pg_sleep(0.005);
    END;
  END LOOP;
  EXECUTE format('DROP TABLE %I', v_partition.name);
  INSERT INTO ledger SELECT * FROM pg_temp.later_entries;
  DELETE FROM ledger l USING pg_temp.entries_elsewhere e
    WHERE l.lane = e.lane AND l.account_id = e.account_id AND l.seq = e.seq AND l.month = e.month;
  UPDATE ledger_archives SET removed_at = clock_timestamp() WHERE month = p_month;
END
$$;
