-- The lines of the statement of an account from one time until before another, both on a quarter of an hour: the balances, the charges by
-- model, and the other entries, of which those after the first 1,000 are added up by kind. No lines if entries of the time are archived.
CREATE OR REPLACE FUNCTION get_statement(p_lane smallint, p_account_id text, p_from timestamptz, p_to timestamptz)
  RETURNS TABLE (
    kind text, id text, created_at timestamptz, reason text, model text, entries bigint, input bigint, output bigint, amount_micros bigint
  )
  LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path FROM CURRENT
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
