-- The audit: whether balances, grants, limits, sums, prices and chains agree with the ledger.

-- Whether the caller begins the next scheduled audit: one of all servers does, p_hours after the last one.
CREATE OR REPLACE FUNCTION claim_audit(p_hours integer) RETURNS TABLE (is_due boolean)
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
BEGIN
  UPDATE audit_state SET claimed_at = clock_timestamp() WHERE claimed_at <= clock_timestamp() - p_hours * interval '1 hour';
  is_due := FOUND;
  RETURN NEXT;
END
$$;

-- The last complete audit, and when a scheduled one last began.
-- null: claimed_at, started_at, seconds
CREATE OR REPLACE FUNCTION last_audit() RETURNS TABLE (
    claimed_at timestamptz, started_at timestamptz, seconds double precision, entries bigint, findings integer
  )
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT
AS $$
  SELECT nullif(a.claimed_at, '-infinity'), a.started_at, extract(epoch FROM a.ended_at - a.started_at)::double precision,
         a.entries, a.findings
  FROM audit_state a
$$;

-- Stores the result of an audit that began at a time, unless that of a later one is stored.
CREATE OR REPLACE FUNCTION record_audit(p_started_at timestamptz, p_entries bigint, p_findings integer) RETURNS void
  LANGUAGE sql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
  UPDATE audit_state SET started_at = p_started_at, ended_at = clock_timestamp(), entries = p_entries, findings = p_findings
    WHERE coalesce(started_at, '-infinity') <= p_started_at
$$;

-- Recomputes one piece of a lane: at most p_limit accounts and p_limit ledger rows, in the order of account and seq, after row
-- p_seq of p_account_id; 2^63 - 1 means that the account is complete. p_rows, p_sum and p_hash are the totals of that account so
-- far.
--
-- Returns one row per difference. The first row has an empty rule, the totals, and the position of the next piece: no account at
-- the end of the lane. An account is compared with its rows in the piece with its last row, so both are from one snapshot;
-- archived entries are continued.
--
-- Not STABLE: the ledger is locked before the snapshot is taken. A statement that waited for the removal of a partition with an
-- older snapshot would find neither the rows nor the archive that has them.
-- null: next_account_id, next_seq, next_rows, next_sum, next_hash
CREATE OR REPLACE FUNCTION audit(
  p_lane smallint, p_account_id text, p_seq bigint, p_rows bigint, p_sum numeric, p_hash bytea, p_limit integer,
  p_max_findings integer
) RETURNS TABLE (
    account_id text, rule text, detail text, accounts bigint, entries bigint, keys bigint, balance_micros numeric,
    next_account_id text, next_seq bigint, next_rows bigint, next_sum numeric, next_hash bytea
  )
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
  -- Forces reads in the order of the primary keys, regardless of the statistics.
  SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off
AS $$
DECLARE
  c_done constant bigint := 9223372036854775807;
  v_ids constant text[] := ARRAY(
    SELECT a.id FROM accounts a
    WHERE a.lane = p_lane AND a.id >= p_account_id AND (a.id > p_account_id OR p_seq < c_done)
    ORDER BY a.id LIMIT p_limit);
  v_has_more constant boolean := cardinality(v_ids) = p_limit;
  v_end text := v_ids[cardinality(v_ids)];
BEGIN
  LOCK TABLE ledger IN ACCESS SHARE MODE;
  IF NOT v_has_more THEN
    -- Rows after the last account would belong to no account.
    v_end := greatest(v_end, (SELECT max(l.account_id) FROM ledger l WHERE l.lane = p_lane));
  END IF;
  RETURN QUERY
  WITH piece AS MATERIALIZED (
    SELECT l.* FROM ledger l
    WHERE l.lane = p_lane AND (l.account_id, l.seq) > (p_account_id, p_seq) AND l.account_id <= v_end
    ORDER BY l.account_id, l.seq LIMIT p_limit
  ), archived AS MATERIALIZED (
    SELECT h.* FROM archived_heads(p_lane, v_ids[1], v_ids[cardinality(v_ids)]) h
    WHERE h.account_id > p_account_id OR h.seq > p_seq
  ), starts AS MATERIALIZED (
    SELECT h.account_id, h.seq AS rows, h.balance_micros::numeric AS sum, h.hash FROM archived h
    UNION ALL
    SELECT p_account_id, p_rows, p_sum, p_hash
    WHERE NOT EXISTS (SELECT 1 FROM archived h WHERE h.account_id = p_account_id)
  ), rows AS MATERIALIZED (
    SELECT p.account_id, p.seq, p.balance_after_micros, p.hash,
           ledger_hash(lag(p.hash, 1, coalesce(s.hash, '\x'::bytea)) OVER chain,
             p.hash_version, p.account_id, p.seq, p.id, p.month, p.kind, p.amount_micros, p.balance_after_micros,
             p.reason, p.request_id, p.key_id, p.model, p.price_version, p.input, p.cached_input, p.cache_write,
             p.output, p.reasoning, p.images, p.image_tokens, p.user_id, p.trace_id, p.created_at, p.cache_write_1h,
             p.price_tier, p.price_list_version, p.upstream, p.upstream_cost_micros, p.adjusted_id) AS expected_hash,
           CASE WHEN p.kind <> 'generation' THEN p.amount_micros
             WHEN r.above_input_tokens = p.price_tier AND (a.version IS NOT NULL OR p.price_list_version = 0)
               THEN -charge_of(p.input, p.cached_input, p.cache_write, p.cache_write_1h, p.output, p.reasoning, p.images,
                 ROW(r.*)::price_rates, a.discount) END
             AS expected_amount, p.amount_micros,
           coalesce(s.rows, 0) + row_number() OVER chain AS expected_seq,
           coalesce(s.sum, 0) + sum(p.amount_micros) OVER chain AS expected_balance
    FROM piece p
    LEFT JOIN starts s ON s.account_id = p.account_id
    LEFT JOIN price_versions v ON v.model = p.model AND v.version = p.price_version
    LEFT JOIN account_prices a ON a.lane = p.lane AND a.account_id = p.account_id AND a.version = p.price_list_version
      AND a.model IN ('', p.model)
    LEFT JOIN LATERAL rates_of(coalesce(a.rates, v.rates), p.input + p.cached_input + p.cache_write) r ON true
    WINDOW chain AS (PARTITION BY p.account_id ORDER BY p.seq)
  ), last_rows AS MATERIALIZED (
    SELECT DISTINCT ON (r.account_id) r.* FROM rows r ORDER BY r.account_id, r.seq DESC
  ), unfinished AS MATERIALIZED (
    -- The piece is full, so its last account may have more rows.
    SELECT r.* FROM last_rows r WHERE (SELECT count(*) FROM rows) = p_limit ORDER BY r.account_id DESC LIMIT 1
  ), finished AS MATERIALIZED (
    SELECT a.id, a.balance_micros, a.held_micros, a.last_seq, a.last_hash AS stored_hash,
           coalesce(r.expected_seq, s.rows, 0) AS entries, coalesce(r.expected_balance, s.sum, 0) AS balance,
           coalesce(r.hash, s.hash, '\x') AS last_hash
    FROM accounts a
    LEFT JOIN last_rows r ON r.account_id = a.id
    LEFT JOIN starts s ON s.account_id = a.id
    WHERE a.lane = p_lane AND a.id = ANY (v_ids)
      AND NOT EXISTS (SELECT 1 FROM unfinished u WHERE a.id >= u.account_id)
  ), next AS (
    SELECT u.account_id, u.seq, u.expected_seq AS rows, u.expected_balance AS sum, u.hash FROM unfinished u
    UNION ALL
    SELECT v_end, c_done, 0, 0, '\x' WHERE v_has_more AND NOT EXISTS (SELECT 1 FROM unfinished)
  ), findings AS (
    SELECT f.id AS account_id, v.rule, v.detail
    FROM finished f
    LEFT JOIN (SELECT o.account_id, sum(o.amount_micros) AS micros FROM holds o
      WHERE o.lane = p_lane AND o.account_id = ANY (v_ids) GROUP BY o.account_id) h ON h.account_id = f.id
    CROSS JOIN LATERAL (VALUES
      ('balance_equals_ledger', CASE WHEN f.balance_micros <> f.balance
        THEN format('balance %s, ledger adds up to %s', f.balance_micros, f.balance) END),
      ('held_equals_open_holds', CASE WHEN f.held_micros <> coalesce(h.micros, 0)
        THEN format('held %s, open holds add up to %s', f.held_micros, coalesce(h.micros, 0)) END),
      ('ledger_complete', CASE WHEN f.last_seq <> f.entries OR f.stored_hash <> f.last_hash
        THEN format('last row %s, rows %s', f.last_seq, f.entries) END)) v (rule, detail)
    WHERE v.detail IS NOT NULL
    UNION ALL
    SELECT r.account_id, 'ledger_has_account', 'there is no such account'
    FROM last_rows r WHERE NOT EXISTS (SELECT 1 FROM accounts a WHERE a.lane = p_lane AND a.id = r.account_id)
    UNION ALL
    SELECT r.account_id, v.rule, v.detail FROM rows r CROSS JOIN LATERAL (VALUES
      ('ledger_without_gaps', CASE WHEN r.seq <> r.expected_seq
        THEN format('row %s is at position %s', r.seq, r.expected_seq) END),
      ('balance_after_correct', CASE WHEN r.balance_after_micros <> r.expected_balance THEN format(
        'row %s has the balance %s, rows up to it add up to %s', r.seq, r.balance_after_micros, r.expected_balance) END),
      ('ledger_unchanged', CASE WHEN r.hash <> r.expected_hash
        THEN format('the hash of row %s does not match the row and the rows before it', r.seq) END),
      ('charge_matches_prices', CASE WHEN r.amount_micros IS DISTINCT FROM r.expected_amount THEN format(
        'row %s has the amount %s, its usage at its prices costs %s', r.seq, r.amount_micros,
        coalesce(r.expected_amount::text, 'nothing known')) END)) v (rule, detail)
    WHERE v.detail IS NOT NULL
  )
  SELECT '', '', '', (SELECT count(*) FROM finished), (SELECT count(*) FROM rows),
         (SELECT count(*) FROM keys k JOIN finished f ON f.id = k.account_id WHERE k.lane = p_lane),
         (SELECT coalesce(sum(f.balance_micros), 0) FROM finished f), n.account_id, n.seq, n.rows, n.sum, n.hash
  FROM (VALUES (1)) AS one LEFT JOIN next n ON true
  UNION ALL
  (SELECT f.account_id, f.rule, f.detail, 0, 0, 0, 0, NULL, NULL, NULL, NULL, NULL FROM findings f
   LIMIT p_max_findings);
END
$$;

-- Compares the usage of one piece of a lane with its ledger: of p_limit entries, in the order of account and seq, after entry
-- p_seq of p_account_id. p_sum is the fingerprint of that account's usage up to there, p_stored that of its sums before quarter
-- p_quarter, which no longer change. Returns rows as audit does. Archived entries are compared by audit_archived_usage.
-- null: next_account_id, next_seq, next_sum
CREATE OR REPLACE FUNCTION audit_usage(
  p_lane smallint, p_account_id text, p_seq bigint, p_sum numeric, p_stored numeric, p_quarter integer, p_limit integer,
  p_max_findings integer
) RETURNS TABLE (
    account_id text, rule text, detail text, next_account_id text, next_seq bigint, next_sum numeric
  )
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
  -- Forces reads in the order of the primary keys, regardless of the statistics.
  SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
BEGIN
  LOCK TABLE ledger IN ACCESS SHARE MODE;
  RETURN QUERY
  WITH RECURSIVE piece AS MATERIALIZED (
    SELECT e.account_id, e.seq, e.fingerprint FROM usage_of_entries(p_lane, p_account_id, p_seq, p_limit) e
  ), parts AS MATERIALIZED (
    SELECT t.account_id, max(t.seq) AS seq, sum(t.fingerprint) AS fingerprint
    FROM (SELECT * FROM piece UNION ALL SELECT p_account_id, p_seq, p_sum WHERE p_seq > 0) t
    GROUP BY t.account_id
  ), unfinished AS MATERIALIZED (
    -- The piece is full, so its last account may have more entries.
    SELECT t.* FROM parts t WHERE (SELECT count(*) FROM piece) = p_limit ORDER BY t.account_id DESC LIMIT 1
  ), ids AS (
    -- The accounts with sums, each found by the index: of an account with archived entries, most sums are not read here.
    SELECT p_account_id AS account_id
    UNION ALL
    SELECT (SELECT min(q.account_id) FROM usage_quarters q WHERE q.lane = p_lane AND q.account_id > i.account_id)
    FROM ids i WHERE i.account_id < coalesce((SELECT t.account_id FROM unfinished t), i.account_id || 'z')
  ), stored AS (
    SELECT i.account_id,
           usage_total(p_lane, i.account_id, greatest(h.end_quarter, CASE i.account_id WHEN p_account_id THEN p_quarter END, 0)) AS fingerprint
    FROM ids i
    LEFT JOIN archived_heads(p_lane, p_account_id, (SELECT t.account_id FROM unfinished t)) h ON h.account_id = i.account_id
    WHERE i.account_id < (SELECT t.account_id FROM unfinished t)
       OR i.account_id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM unfinished)
  ), different AS (
    SELECT coalesce(s.account_id, t.account_id) AS account_id
    FROM stored s FULL JOIN parts t ON t.account_id = s.account_id
    WHERE coalesce(s.fingerprint, 0) + CASE coalesce(s.account_id, t.account_id) WHEN p_account_id THEN p_stored ELSE 0 END
        <> coalesce(t.fingerprint, 0)
      AND coalesce(s.account_id, t.account_id) <> coalesce((SELECT f.account_id FROM unfinished f), '')
  )
  SELECT '', '', '', n.account_id, n.seq, n.fingerprint FROM (VALUES (1)) AS one LEFT JOIN unfinished n ON true
  UNION ALL
  (SELECT d.account_id, 'usage_equals_ledger', coalesce(x.detail, 'the sums differ from the ledger'), NULL, NULL, NULL
   FROM different d
   LEFT JOIN accounts a ON a.lane = p_lane AND a.id = d.account_id
   -- Finding the sums that differ reads all entries of an account at once.
   LEFT JOIN LATERAL (SELECT u AS detail FROM usage_differences(p_lane, d.account_id, 10) u WHERE a.last_seq <= 100000) x ON true
   -- The clock of the database may have been set back when the archived month ended, and while a piece was read entries may
   -- have been archived.
   WHERE NOT EXISTS (SELECT 1 FROM archived_heads(p_lane, d.account_id, d.account_id) h)
     OR NOT usage_equals_ledger(p_lane, d.account_id)
   LIMIT p_max_findings);
END
$$;

-- The sums of the usage of an account that differ from its ledger entries, described in words. Without archived entries and
-- their usage.
CREATE OR REPLACE FUNCTION usage_differences(p_lane smallint, p_account_id text, p_limit integer) RETURNS SETOF text
  LANGUAGE plpgsql STABLE
AS $$
BEGIN
  RETURN QUERY
  WITH entries AS (
    SELECT (e.usage).quarter, (e.usage).key_id, (e.usage).model, (e.usage).user_id, (e.usage).price_version,
           (e.usage).price_tier, (e.usage).price_list_version, (e.usage).upstream, sum((e.usage).requests) AS requests,
           sum((e.usage).input + (e.usage).cached_input + (e.usage).cache_write + (e.usage).output + (e.usage).reasoning
             + (e.usage).images + (e.usage).image_tokens + (e.usage).cache_write_1h) AS units,
           sum((e.usage).cost_micros) AS cost_micros,
           sum((e.usage).upstream_cost_micros) AS upstream_cost_micros, sum((e.usage).uncosted_micros) AS uncosted_micros
    FROM usage_of_entries(p_lane, p_account_id, 0, (SELECT a.last_seq FROM accounts a
      WHERE a.lane = p_lane AND a.id = p_account_id)) e
    WHERE e.account_id = p_account_id AND (e.usage).requests > 0
    GROUP BY 1, 2, 3, 4, 5, 6, 7, 8
  ), stored AS (
    SELECT u.quarter, u.key_id, u.model, u.user_id, u.price_version, u.price_tier, u.price_list_version, u.upstream, u.requests,
           u.input + u.cached_input + u.cache_write + u.output + u.reasoning + u.images + u.image_tokens
             + u.cache_write_1h AS units,
           u.cost_micros, u.upstream_cost_micros, u.uncosted_micros
    FROM usage_quarters u WHERE u.lane = p_lane AND u.account_id = p_account_id AND u.quarter >= coalesce(
      (SELECT h.end_quarter FROM archived_heads(p_lane, p_account_id, p_account_id) h), 0)
  )
  SELECT format('%s, key %s, model %s: %s requests, %s units, %s micros; in the ledger %s, %s, %s',
           to_timestamp(coalesce(s.quarter, e.quarter) * 900.0), coalesce(s.key_id, e.key_id),
           coalesce(s.model, e.model), coalesce(s.requests, 0), coalesce(s.units, 0), coalesce(s.cost_micros, 0),
           coalesce(e.requests, 0), coalesce(e.units, 0), coalesce(e.cost_micros, 0))
  FROM stored s FULL JOIN entries e ON (e.quarter, e.price_version, e.price_tier, e.price_list_version)
      = (s.quarter, s.price_version, s.price_tier, s.price_list_version)
    AND e.key_id = s.key_id AND e.model = s.model AND e.user_id = s.user_id AND e.upstream = s.upstream
  WHERE (s.requests, s.units, s.cost_micros, s.upstream_cost_micros, s.uncosted_micros)
    IS DISTINCT FROM (e.requests, e.units, e.cost_micros, e.upstream_cost_micros, e.uncosted_micros)
  ORDER BY coalesce(s.quarter, e.quarter) LIMIT p_limit;
END
$$;

-- The fingerprint of the sums of an account from quarter p_from on.
CREATE OR REPLACE FUNCTION usage_total(p_lane smallint, p_account_id text, p_from integer) RETURNS numeric
  LANGUAGE plpgsql STABLE
  SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
BEGIN
  RETURN (SELECT coalesce(sum(usage_fingerprint(q)), 0)
    FROM usage_quarters q WHERE q.lane = p_lane AND q.account_id = p_account_id AND q.quarter >= p_from);
END
$$;

-- Whether the usage of an account is that of its entries, archived ones included. Reads all of both.
CREATE OR REPLACE FUNCTION usage_equals_ledger(p_lane smallint, p_account_id text) RETURNS boolean
  LANGUAGE plpgsql STABLE
AS $$
DECLARE
  v_head archived_ledger;
BEGIN
  SELECT h.* INTO v_head FROM archived_heads(p_lane, p_account_id, p_account_id) h;
  RETURN usage_total(p_lane, p_account_id, 0) = coalesce(v_head.usage_fingerprint, 0) + (
    SELECT coalesce(sum(e.fingerprint), 0)
    FROM usage_of_entries(p_lane, p_account_id, coalesce(v_head.seq, 0), (SELECT a.last_seq FROM accounts a
      WHERE a.lane = p_lane AND a.id = p_account_id)) e
    WHERE e.account_id = p_account_id
  );
END
$$;

-- Compares the usage of the archived entries of a lane with what it was when they were archived: at most p_limit sums, after
-- p_position (a sum as JSON; empty for the start). p_sum is the fingerprint of its account up to there. Returns rows as audit
-- does.
-- null: next, next_sum
CREATE OR REPLACE FUNCTION audit_archived_usage(
  p_lane smallint, p_position text, p_sum numeric, p_limit integer, p_max_findings integer
) RETURNS TABLE (account_id text, rule text, detail text, next text, next_sum numeric)
  LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT
  SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off
AS $$
DECLARE
  v_account_id constant text := coalesce(nullif(p_position, '')::json ->> 'account_id', '');
  v_after constant usage_place := usage_place_of(p_position, -1);
BEGIN
  IF NOT EXISTS (SELECT 1 FROM ledger_archives a WHERE a.removed_at IS NOT NULL) THEN
    RETURN QUERY SELECT '', '', '', NULL::text, NULL::numeric;
    RETURN;
  END IF;
  RETURN QUERY
  WITH piece AS MATERIALIZED (
    SELECT u.sum, row_number() OVER () AS number FROM (
      SELECT q AS sum FROM usage_quarters q
      WHERE q.lane = p_lane AND (q.account_id, q.quarter, q.key_id, q.model, q.user_id, q.price_version, q.price_tier, q.price_list_version, q.upstream)
        > (v_account_id, v_after.quarter, v_after.key_id, v_after.model, v_after.user_id, v_after.price_version, v_after.price_tier,
            v_after.price_list_version, v_after.upstream)
      ORDER BY q.account_id, q.quarter, q.key_id, q.model, q.user_id, q.price_version, q.price_tier, q.price_list_version, q.upstream
      LIMIT p_limit
    ) u
  ), unfinished AS MATERIALIZED (
    SELECT (l.sum).account_id, l.sum FROM piece l WHERE l.number = p_limit
  ), heads AS MATERIALIZED (
    SELECT h.* FROM archived_heads(p_lane, v_account_id, (SELECT n.account_id FROM unfinished n)) h
  ), sums AS MATERIALIZED (
    SELECT h.account_id, h.usage_fingerprint AS expected,
           CASE h.account_id WHEN v_account_id THEN p_sum ELSE 0 END + coalesce(sum(usage_fingerprint(p.sum)), 0) AS fingerprint
    FROM heads h
    LEFT JOIN piece p ON (p.sum).account_id = h.account_id AND (p.sum).quarter < h.end_quarter
    GROUP BY h.account_id, h.usage_fingerprint
  )
  SELECT '', '', '', (SELECT to_json(n.sum)::text FROM unfinished n),
         coalesce((SELECT s.fingerprint FROM sums s JOIN unfinished n ON n.account_id = s.account_id), 0)
  UNION ALL
  (SELECT s.account_id, 'usage_equals_ledger', 'the usage of the archived entries changed since they were archived', NULL,
          NULL
   FROM sums s
   WHERE s.fingerprint <> s.expected AND s.account_id IS DISTINCT FROM (SELECT n.account_id FROM unfinished n)
     AND NOT usage_equals_ledger(p_lane, s.account_id)
   LIMIT p_max_findings);
END
$$;

-- The fingerprint of at most p_limit sums of the usage of an account that is not archived, before quarter p_end, after p_position
-- (a sum as JSON; empty for the start), and the position of the last one; NULL at the end.
-- null: next
CREATE OR REPLACE FUNCTION stored_usage(
  p_lane smallint, p_account_id text, p_end integer, p_position text, p_limit integer
) RETURNS TABLE (fingerprint numeric, next text)
  LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT
  SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off
AS $$
DECLARE
  v_after constant usage_place := usage_place_of(p_position,
    coalesce((SELECT h.end_quarter FROM archived_heads(p_lane, p_account_id, p_account_id) h), -1));
BEGIN
  RETURN QUERY
  WITH piece AS MATERIALIZED (
    SELECT u.sum, row_number() OVER () AS number FROM (
      SELECT q AS sum FROM usage_quarters q
      WHERE q.lane = p_lane AND q.account_id = p_account_id AND q.quarter < p_end
        AND (q.quarter, q.key_id, q.model, q.user_id, q.price_version, q.price_tier, q.price_list_version, q.upstream)
          > (v_after.quarter, v_after.key_id, v_after.model, v_after.user_id, v_after.price_version, v_after.price_tier,
            v_after.price_list_version, v_after.upstream)
      ORDER BY q.quarter, q.key_id, q.model, q.user_id, q.price_version, q.price_tier, q.price_list_version, q.upstream LIMIT p_limit
    ) u
  )
  SELECT coalesce(sum(usage_fingerprint(p.sum)), 0), (SELECT to_json(l.sum)::text FROM piece l WHERE l.number = p_limit)
  FROM piece p;
END
$$;

-- The usage of ledger entries, as add_usage counts it: of p_limit entries of a lane after entry p_seq of p_account_id.
-- A user without a sum of its own counts for "(other)". See usage_fingerprint.
CREATE OR REPLACE FUNCTION usage_of_entries(p_lane smallint, p_account_id text, p_seq bigint, p_limit bigint)
  RETURNS TABLE (account_id text, seq bigint, usage usage_quarters, fingerprint numeric)
  LANGUAGE plpgsql STABLE
  SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off
AS $$
BEGIN
  RETURN QUERY
  SELECT u.account_id, u.seq, u.usage, CASE (u.usage).requests WHEN 0 THEN 0 ELSE usage_fingerprint(u.usage) END
  FROM (
    SELECT l.account_id, l.seq, ROW(l.lane, l.account_id, l.quarter, l.key_id, l.model,
           CASE WHEN l.user_id = '' OR EXISTS (SELECT 1 FROM usage_quarters u WHERE u.lane = p_lane
             AND u.account_id = l.account_id AND u.quarter = l.quarter AND u.key_id = l.key_id AND u.model = l.model
             AND u.user_id = l.user_id AND u.price_version = l.price_version
             AND u.price_tier = l.price_tier AND u.price_list_version = l.price_list_version
             AND u.upstream = l.upstream) THEN l.user_id ELSE '(other)' END,
           l.price_version, (l.kind = 'generation')::integer, l.input, l.cached_input, l.cache_write, l.output, l.reasoning,
           l.images, l.image_tokens, CASE l.kind WHEN 'generation' THEN -l.amount_micros ELSE 0 END, l.cache_write_1h,
           l.price_tier, l.price_list_version, l.upstream, coalesce(l.upstream_cost_micros, 0),
           CASE WHEN l.kind = 'generation' AND l.upstream_cost_micros IS NULL THEN -l.amount_micros ELSE 0 END
           )::usage_quarters AS usage
    FROM (
      SELECT e.*, floor(extract(epoch FROM e.created_at) / 900)::integer AS quarter FROM ledger e
      WHERE e.lane = p_lane AND (e.account_id, e.seq) > (p_account_id, p_seq)
      ORDER BY e.account_id, e.seq LIMIT p_limit
    ) l
    -- Evaluates users once.
    OFFSET 0
  ) u;
END
$$;

-- A number for a part of the usage. The numbers of the parts of a sum add up to that of the sum, and sums that differ have
-- different numbers, except by chance, so totals that were read in any order can be compared. In SQL, so that PostgreSQL inlines
-- it.
CREATE OR REPLACE FUNCTION usage_fingerprint(p_sum usage_quarters) RETURNS numeric
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN (hashtextextended(concat_ws(':', p_sum.quarter, p_sum.price_version, p_sum.price_tier, p_sum.price_list_version,
      octet_length(p_sum.key_id), p_sum.key_id, octet_length(p_sum.model), p_sum.model, octet_length(p_sum.user_id), p_sum.user_id,
      p_sum.upstream), 0) & 2147483647)::numeric
    * (p_sum.requests + p_sum.input * 1000003::numeric + p_sum.cached_input * 2000003::numeric
      + p_sum.cache_write * 3000017::numeric + p_sum.output * 4000037::numeric + p_sum.reasoning * 5000011::numeric
      + p_sum.images * 6000011::numeric + p_sum.image_tokens * 7000003::numeric + p_sum.cost_micros * 8000009::numeric
      + p_sum.cache_write_1h * 9000011::numeric + p_sum.upstream_cost_micros * 10000019::numeric
      + p_sum.uncosted_micros * 11000027::numeric);

-- Compares the grants of a lane with the balances and, without archived entries, with the ledger: those of at most p_limit
-- accounts after p_account_id. Returns rows as audit does, with the account after which the next piece starts.
-- null: next_account_id
CREATE OR REPLACE FUNCTION audit_grants(p_lane smallint, p_account_id text, p_limit integer, p_max_findings integer)
  RETURNS TABLE (account_id text, rule text, detail text, next_account_id text)
  LANGUAGE sql SECURITY DEFINER SET search_path FROM CURRENT
  SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
  LOCK TABLE ledger IN ACCESS SHARE MODE;
  WITH ids AS MATERIALIZED (
    SELECT a.id, a.balance_micros, a.grants_expire_at FROM accounts a
    WHERE a.lane = p_lane AND a.id > p_account_id ORDER BY a.id LIMIT p_limit
  ), sums AS MATERIALIZED (
    SELECT i.*, s.next, s.grants, (SELECT coalesce(sum(r.rest_micros), 0) FROM grant_rests(p_lane, i.id) r) AS rest
    FROM ids i CROSS JOIN LATERAL (
      SELECT min(g.expires_at) FILTER (WHERE g.rest_micros > 0) AS next, count(*) AS grants
      FROM grants g WHERE g.lane = p_lane AND g.account_id = i.id) s
  ), findings AS (
    SELECT s.id AS account_id, 'balance_covers_grants' AS rule, format('balance %s, grants add up to %s', s.balance_micros, s.rest) AS detail
    FROM sums s WHERE s.rest > s.balance_micros
    UNION ALL
    SELECT s.id, 'next_expiry_known', format('next expiry %s, that of the grants is %s', s.grants_expire_at, s.next)
    FROM sums s WHERE s.grants_expire_at IS DISTINCT FROM s.next
    UNION ALL
    SELECT s.id, p.rule, p.detail FROM sums s CROSS JOIN LATERAL replay_grants(p_lane, s.id) p
    WHERE s.grants > 0 AND NOT EXISTS (SELECT 1 FROM archived_heads(p_lane, s.id, s.id))
  )
  SELECT '', '', '', (SELECT max(i.id) FROM ids i HAVING count(*) = p_limit)
  UNION ALL
  (SELECT f.account_id, f.rule, f.detail, NULL FROM findings f LIMIT p_max_findings);
$$;

-- Computes the grants of an account again from its ledger, and compares them. Returns one row per difference. What a charge took
-- from a grant an hour after its expiry is a difference too: no call runs for so long.
CREATE OR REPLACE FUNCTION replay_grants(p_lane smallint, p_account_id text) RETURNS TABLE (rule text, detail text)
  LANGUAGE plpgsql STABLE
AS $$
DECLARE
  v_grants grants[];
  v_balance bigint := 0;
  v_seq bigint := 0;
  v_spent bigint;
  v_part bigint;
  v_last constant bigint := (SELECT a.last_seq FROM accounts a WHERE a.lane = p_lane AND a.id = p_account_id);
  r record;
BEGIN
  FOR r IN
    SELECT l.seq, l.kind::text AS kind, l.amount_micros, l.created_at FROM ledger l
      WHERE l.lane = p_lane AND l.account_id = p_account_id AND l.kind <> 'generation'
    -- An hour after each expiry.
    UNION ALL SELECT seq_at(p_lane, p_account_id, g.expires_at + interval '1 hour', v_last) - 1, 'late', 0,
        g.expires_at + interval '1 hour' FROM grants g
      WHERE g.lane = p_lane AND g.account_id = p_account_id AND isfinite(g.expires_at)
    UNION ALL SELECT v_last, 'end', 0, 'infinity'
    ORDER BY 1, 2 DESC
  LOOP
    -- The charges since the row before.
    v_spent := (SELECT coalesce(-sum(l.amount_micros), 0) FROM ledger l
      WHERE l.lane = p_lane AND l.account_id = p_account_id AND l.kind = 'generation' AND l.seq > v_seq AND l.seq <= r.seq);
    v_balance := v_balance - v_spent + r.amount_micros;
    FOR i IN 1..coalesce(cardinality(v_grants), 0) LOOP
      v_part := least(v_grants[i].rest_micros, v_spent);
      v_grants[i].rest_micros := v_grants[i].rest_micros - v_part;
      v_spent := v_spent - v_part;
      IF v_part > 0 AND (SELECT l.created_at FROM ledger l WHERE l.lane = p_lane AND l.account_id = p_account_id
          AND l.seq = v_seq + 1) > v_grants[i].expires_at + interval '1 hour' THEN
        RETURN QUERY VALUES ('expired_grant_not_spent', format('charges after row %s took %s from the credit of row %s, which had expired',
          v_seq, v_part, v_grants[i].seq));
      END IF;
    END LOOP;
    v_seq := r.seq;
    IF r.kind = 'expiry' THEN
      v_spent := -r.amount_micros;
      FOR i IN 1..coalesce(cardinality(v_grants), 0) LOOP
        v_part := least(v_grants[i].rest_micros, v_spent);
        v_grants[i].rest_micros := v_grants[i].rest_micros - v_part;
        v_spent := v_spent - v_part;
        IF v_part > 0 AND v_grants[i].expires_at > r.created_at THEN
          RETURN QUERY VALUES ('grant_expires_in_time', format('row %s is the expiry of the credit of row %s, which had not expired', r.seq,
            v_grants[i].seq));
        END IF;
      END LOOP;
      IF v_spent > 0 THEN
        RETURN QUERY VALUES ('grant_expires_in_time', format('row %s takes %s more than what had expired', r.seq, v_spent));
      END IF;
    ELSE
      -- What exceeds the balance is taken from the grants that expire last.
      v_spent := greatest(0, (SELECT coalesce(sum(g.rest_micros), 0) FROM unnest(v_grants) g) - v_balance);
      FOR i IN REVERSE coalesce(cardinality(v_grants), 0)..1 LOOP
        v_part := least(v_grants[i].rest_micros, v_spent);
        v_grants[i].rest_micros := v_grants[i].rest_micros - v_part;
        v_spent := v_spent - v_part;
      END LOOP;
      IF r.kind = 'credit' THEN
        v_grants := ARRAY(SELECT g FROM (
          SELECT (unnest(v_grants)).* UNION ALL
          SELECT n.lane, n.account_id, n.expires_at, n.seq, n.entry_id, n.amount_micros, n.amount_micros, n.is_promotional FROM grants n
            WHERE n.lane = p_lane AND n.account_id = p_account_id AND n.seq = r.seq
        ) g ORDER BY g.expires_at, g.seq);
      END IF;
    END IF;
  END LOOP;
  RETURN QUERY SELECT 'grants_match_ledger', format('%s is left of the credit of row %s, the ledger leaves %s', coalesce(i.rest_micros, 0),
      g.seq, coalesce(e.rest_micros::text, 'nothing: there is no such row'))
    FROM grants g LEFT JOIN grant_rests(p_lane, p_account_id) i ON i.seq = g.seq LEFT JOIN unnest(v_grants) e ON e.seq = g.seq
    WHERE g.lane = p_lane AND g.account_id = p_account_id AND coalesce(i.rest_micros, 0) IS DISTINCT FROM e.rest_micros;
END
$$;

-- Compares the counters of limits of a lane with the ledger and with the open holds: those of at most p_limit accounts after
-- p_account_id. Windows of an hour and longer are compared with the usage; windows of a minute, those that are not counted from
-- their start or in which the key was on another plan, and those of users with the entries. Where these are archived, users are
-- compared with the usage if it names all of them, and the others are not compared. Returns rows as audit does.
-- null: next_account_id
CREATE OR REPLACE FUNCTION audit_limits(p_lane smallint, p_account_id text, p_limit integer, p_max_findings integer)
  RETURNS TABLE (account_id text, rule text, detail text, next_account_id text)
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
  SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
BEGIN
  LOCK TABLE ledger IN ACCESS SHARE MODE;
  RETURN QUERY
  WITH ids AS MATERIALIZED (
    SELECT a.id, a.last_seq FROM accounts a WHERE a.lane = p_lane AND a.id > p_account_id ORDER BY a.id LIMIT p_limit
  ), counters AS MATERIALIZED (
    SELECT i.id AS account_id, c.limit_id, c.subject_id, c.user_id, c.spent, c.held, c.window_end, c.uncounted, l.metric, l.period, l.model,
           l.per_user, w.since, r.is_read, CASE WHEN r.is_read AND isfinite(w.since)
             THEN seq_at(p_lane, i.id, w.since, i.last_seq) ELSE 0 END AS first_seq
    FROM ids i
    CROSS JOIN LATERAL (
      SELECT o.subject_id, o.user_id, x.*, coalesce((
        SELECT n.uncounted FROM limit_counters n WHERE n.lane = p_lane AND n.account_id = i.id AND n.subject_id = o.subject_id
          AND n.plan = o.plan AND n.user_id = ''), '{}') AS uncounted
      FROM limit_counters o
      CROSS JOIN LATERAL unnest((o.counter).limit_ids, (o.counter).window_ends, (o.counter).spent, (o.counter).held, (o.counter).counted_since)
        AS x (limit_id, window_end, spent, held, counted_since)
      WHERE o.lane = p_lane AND o.account_id = i.id
    ) c
    JOIN limits l ON l.lane IN (p_lane, 1024) AND l.id = c.limit_id
    CROSS JOIN LATERAL (
      SELECT greatest(c.counted_since, window_start(l.period, c.window_end - interval '1 microsecond')) AS since
    ) w
    CROSS JOIN LATERAL (
      SELECT EXISTS (SELECT 1 FROM archived_ledger h WHERE h.lane = p_lane AND h.account_id = i.id
        AND to_timestamp(h.end_quarter * 900.0) > w.since) AS is_archived
    ) a
    CROSS JOIN LATERAL (
      SELECT CASE WHEN c.uncounted = '{}' THEN false WHEN a.is_archived THEN true
        ELSE c.uncounted && int8range(seq_at(p_lane, i.id, w.since, i.last_seq), seq_at(p_lane, i.id, c.window_end, i.last_seq))
        END AS has_gap
    ) g
    -- Whether the entries are read: NULL if what was counted cannot be computed again.
    CROSS JOIN LATERAL (
      SELECT CASE WHEN c.user_id = '(other)' OR c.counted_since = 'infinity' THEN NULL
        WHEN NOT (l.per_user OR l.period = 'minute' OR isfinite(c.counted_since) OR g.has_gap) THEN false
        WHEN NOT a.is_archived THEN true
        WHEN l.period <> 'minute' AND NOT isfinite(c.counted_since) AND NOT g.has_gap AND NOT EXISTS (SELECT 1 FROM usage_quarters u
          WHERE u.lane = p_lane AND u.account_id = i.id AND u.user_id = '(other)') THEN false END AS is_read
    ) r
  ), sums AS (
    SELECT c.account_id, c.limit_id, c.subject_id, c.user_id, c.metric, c.spent, c.held, c.is_read, x.spent + y.spent AS expected_spent,
           h.held AS expected_held
    FROM counters c
    CROSS JOIN LATERAL (
      SELECT coalesce(sum(CASE c.metric WHEN 'cost' THEN u.cost_micros WHEN 'cost_alert' THEN u.cost_micros WHEN 'generations' THEN u.requests
               ELSE u.input + u.cached_input + u.cache_write + u.output + u.reasoning END), 0) AS spent
      FROM usage_quarters u
      WHERE NOT c.is_read AND u.lane = p_lane AND u.account_id = c.account_id AND (c.model = '' OR u.model = c.model)
        AND (NOT c.per_user OR u.user_id = c.user_id)
        AND u.quarter >= CASE WHEN isfinite(c.since) THEN floor(extract(epoch FROM c.since) / 900) ELSE 0 END
        AND (NOT isfinite(c.window_end) OR u.quarter < floor(extract(epoch FROM c.window_end) / 900))
        AND (c.subject_id = c.account_id OR c.subject_id = u.key_id OR EXISTS (
          SELECT 1 FROM keys k WHERE k.lane = p_lane AND k.id = u.key_id AND c.subject_id = ANY (k.ancestors)))
    ) x
    CROSS JOIN LATERAL (
      SELECT coalesce(sum(CASE c.metric WHEN 'cost' THEN -e.amount_micros WHEN 'cost_alert' THEN -e.amount_micros WHEN 'generations' THEN 1
               ELSE e.input::bigint + e.cached_input + e.cache_write + e.output + e.reasoning END), 0) AS spent
      FROM ledger e
      WHERE c.is_read AND e.lane = p_lane AND e.account_id = c.account_id AND e.seq >= c.first_seq AND e.kind = 'generation'
        AND e.created_at >= c.since AND e.created_at < c.window_end AND NOT c.uncounted @> e.seq
        AND (c.model = '' OR e.model = c.model) AND (NOT c.per_user OR e.user_id = c.user_id)
        AND (c.subject_id = c.account_id OR c.subject_id = e.key_id OR EXISTS (
          SELECT 1 FROM keys k WHERE k.lane = p_lane AND k.id = e.key_id AND c.subject_id = ANY (k.ancestors)))
    ) y
    CROSS JOIN LATERAL (
      SELECT coalesce(sum(x.amount), 0) AS held FROM holds o CROSS JOIN LATERAL unnest(o.counters) n
      CROSS JOIN LATERAL unnest(n.limit_ids, n.amounts) AS x (limit_id, amount)
      WHERE o.lane = p_lane AND o.account_id = c.account_id AND x.limit_id = c.limit_id
        AND n.subject_id = c.subject_id AND n.user_id = c.user_id
    ) h
  ), findings AS (
    SELECT s.account_id, 'limit_spent_equals_ledger' AS rule,
           format('limit %s (%s) of %s: spent %s, ledger adds up to %s', s.limit_id, s.metric, s.subject_id, s.spent,
             s.expected_spent) AS detail
    FROM sums s WHERE s.metric <> 'concurrent' AND s.is_read IS NOT NULL AND s.spent <> s.expected_spent
    UNION ALL
    SELECT s.account_id, 'limit_held_equals_open_holds',
           format('limit %s (%s) of %s: held %s, open holds add up to %s', s.limit_id, s.metric, s.subject_id, s.held,
             s.expected_held)
    FROM sums s WHERE s.held <> s.expected_held
  )
  SELECT '', '', '', CASE WHEN (SELECT count(*) FROM ids) = p_limit THEN (SELECT max(i.id) FROM ids i) END
  UNION ALL
  (SELECT f.account_id, f.rule, f.detail, NULL FROM findings f LIMIT p_max_findings);
END
$$;

-- Recomputes the hashes of all price versions, those of accounts included. Returns one row per version that was changed, that
-- follows a gap, or that is not the last one although its account says so.
CREATE OR REPLACE FUNCTION audit_prices(p_max_findings integer) RETURNS TABLE (account_id text, rule text, detail text)
  LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT
AS $$
BEGIN
  RETURN QUERY
  SELECT c.account_id, 'prices_unchanged', format('the hash of %s does not match the version and the versions before it', c.name)
  FROM (
    SELECT '' AS account_id, v.model, v.version, format('price version %s of model "%s"', v.version, v.model) AS name, v.hash,
           row_number() OVER chain AS expected_version,
           price_hash(lag(v.hash, 1, '\x'::bytea) OVER chain, ROW(v.*)::price_versions) AS expected_hash
    FROM price_versions v WINDOW chain AS (PARTITION BY v.model ORDER BY v.version)
    UNION ALL
    SELECT v.account_id, '', v.version, format('version %s of the prices of the account', v.version), v.hash, row_number() OVER chain,
           account_price_hash(lag(v.hash, 1, '\x'::bytea) OVER chain, ROW(v.*)::account_prices)
    FROM account_prices v WINDOW chain AS (PARTITION BY v.account_id ORDER BY v.version)
  ) c
  WHERE c.hash <> c.expected_hash OR c.version <> c.expected_version
  ORDER BY c.account_id, c.model, c.version LIMIT p_max_findings;
  RETURN QUERY
  SELECT a.id, 'prices_unchanged', format('the account has price version %s, the last one is %s', a.price_list_version, v.last)
  FROM accounts a
  CROSS JOIN LATERAL (
    SELECT coalesce(max(p.version), 0) AS last FROM account_prices p WHERE p.lane = a.lane AND p.account_id = a.id
  ) v
  WHERE (a.price_list_version > 0 OR a.id IN (SELECT p.account_id FROM account_prices p)) AND a.price_list_version <> v.last
  ORDER BY a.id LIMIT p_max_findings;
END
$$;

-- Recomputes one piece of the operator log: at most p_limit events after event p_seq of p_lane, whose hash is p_hash. Returns
-- rows as audit does; at the end, the last events are compared with the ends of the chains.
-- null: next_lane, next_seq, next_hash
CREATE OR REPLACE FUNCTION audit_operator_events(
  p_lane smallint, p_seq bigint, p_hash bytea, p_limit integer, p_max_findings integer
) RETURNS TABLE (
    account_id text, rule text, detail text, events bigint, next_lane smallint, next_seq bigint, next_hash bytea
  )
  LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT
  SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
BEGIN
  RETURN QUERY
  WITH piece AS MATERIALIZED (
    SELECT e.lane, e.seq, e.hash, e.account_id, ROW(e.*)::operator_events AS event FROM operator_events e
    WHERE (e.lane, e.seq) > (p_lane, p_seq) ORDER BY e.lane, e.seq LIMIT p_limit
  ), rows AS MATERIALIZED (
    SELECT p.lane, p.seq, p.hash, p.account_id,
           CASE p.lane WHEN p_lane THEN p_seq ELSE 0 END + row_number() OVER chain AS expected_seq,
           operator_event_hash(lag(p.hash, 1, CASE p.lane WHEN p_lane THEN p_hash ELSE '\x'::bytea END) OVER chain,
             p.event) AS expected_hash
    FROM piece p WINDOW chain AS (PARTITION BY p.lane ORDER BY p.seq)
  ), next AS (
    SELECT r.lane, r.seq, r.hash FROM rows r WHERE (SELECT count(*) FROM rows) = p_limit
    ORDER BY r.lane DESC, r.seq DESC LIMIT 1
  ), findings AS (
    SELECT r.account_id, 'operator_log_unchanged' AS rule,
           format('event %s of lane %s does not match the event and the events before it', r.seq, r.lane) AS detail
    FROM rows r WHERE r.hash <> r.expected_hash OR r.seq <> r.expected_seq
    UNION ALL
    SELECT '', 'operator_log_complete', format('the last event of lane %s is %s, the log ends with %s', c.lane,
             c.last_seq, coalesce(l.seq, 0))
    FROM operator_chains c
    LEFT JOIN LATERAL (SELECT e.seq, e.hash FROM operator_events e WHERE e.lane = c.lane
      ORDER BY e.seq DESC LIMIT 1) l ON true
    WHERE NOT EXISTS (SELECT 1 FROM next)
      AND (c.last_seq, c.last_hash) IS DISTINCT FROM (coalesce(l.seq, 0), coalesce(l.hash, '\x'))
  )
  SELECT '', '', '', (SELECT count(*) FROM rows), n.lane, n.seq, n.hash
  FROM (VALUES (1)) AS one LEFT JOIN next n ON true
  UNION ALL
  (SELECT f.account_id, f.rule, f.detail, 0, NULL, NULL, NULL FROM findings f LIMIT p_max_findings);
END
$$;
