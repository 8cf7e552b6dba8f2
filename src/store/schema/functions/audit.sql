-- Recomputes one piece of a lane: at most p_limit accounts and p_limit ledger rows, in the order of account and seq.
-- The piece starts after row p_seq of p_account_id; p_rows, p_sum and p_hash are the totals of that account so far. A
-- p_seq of 2^63 - 1 means that the account is complete.
--
-- Returns one row per difference. The first row has an empty rule, the totals, and the position of the next piece: no account
-- at the end of the lane. An account is compared with its rows in the piece that contains its last row, so both are from one
-- snapshot; earlier rows change only by tampering. Rows of an account with archived entries continue the last of these; an
-- audit during which entries are archived continues there.
--
-- Not STABLE: the ledger is locked before the snapshot is taken. A statement that waited for the removal of a partition with
-- an older snapshot would find neither the rows nor the archive that has them.
CREATE OR REPLACE FUNCTION audit(
  p_lane smallint, p_account_id text, p_seq bigint, p_rows bigint, p_sum numeric, p_hash bytea, p_limit integer,
  p_max_findings integer
) RETURNS TABLE (
    account_id text, rule text, detail text, accounts bigint, entries bigint, keys bigint, balance_micros numeric,
    next_account_id text, next_seq bigint, next_rows bigint, next_sum numeric, next_hash bytea
  )
  LANGUAGE plpgsql SECURITY DEFINER
  SET search_path FROM CURRENT
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
    SELECT f.id AS account_id, 'balance_equals_ledger' AS rule,
           format('balance %s, ledger adds up to %s', f.balance_micros, f.balance) AS detail
    FROM finished f WHERE f.balance_micros <> f.balance
    UNION ALL
    SELECT f.id, 'held_equals_open_holds',
           format('held %s, open holds add up to %s', f.held_micros, coalesce(h.held_micros, 0))
    FROM finished f
    LEFT JOIN held_by_accounts(p_lane, ARRAY(SELECT id FROM finished)) h ON h.account_id = f.id
    WHERE f.held_micros <> coalesce(h.held_micros, 0)
    UNION ALL
    SELECT f.id, 'ledger_complete', format('last row %s, rows %s', f.last_seq, f.entries)
    FROM finished f WHERE f.last_seq <> f.entries OR f.stored_hash <> f.last_hash
    UNION ALL
    SELECT r.account_id, 'ledger_has_account', 'there is no such account'
    FROM last_rows r WHERE NOT EXISTS (SELECT 1 FROM accounts a WHERE a.lane = p_lane AND a.id = r.account_id)
    UNION ALL
    SELECT r.account_id, 'ledger_without_gaps', format('row %s is at position %s', r.seq, r.expected_seq)
    FROM rows r WHERE r.seq <> r.expected_seq
    UNION ALL
    SELECT r.account_id, 'balance_after_correct',
           format('row %s has the balance %s, rows up to it add up to %s', r.seq, r.balance_after_micros, r.expected_balance)
    FROM rows r WHERE r.balance_after_micros <> r.expected_balance
    UNION ALL
    SELECT r.account_id, 'ledger_unchanged',
           format('the hash of row %s does not match the row and the rows before it', r.seq)
    FROM rows r WHERE r.hash <> r.expected_hash
    UNION ALL
    SELECT r.account_id, 'charge_matches_prices',
           format('row %s has the amount %s, its usage at its prices costs %s', r.seq, r.amount_micros,
             coalesce(r.expected_amount::text, 'nothing known'))
    FROM rows r WHERE r.amount_micros IS DISTINCT FROM r.expected_amount
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
