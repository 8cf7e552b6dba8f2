-- The entries of a lane that the archive of this month has, as lines of JSON in the order of account and number: at most
-- p_limit, after entry p_seq of p_account_id. Also returns whether each charge is the cost of its usage at its prices.
CREATE OR REPLACE FUNCTION entries_to_archive(
  p_lane smallint, p_month integer, p_account_id text, p_seq bigint, p_limit integer
) RETURNS TABLE (account_id text, seq bigint, line text, is_charge_right boolean)
  LANGUAGE plpgsql STABLE
  SET search_path FROM CURRENT
  SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
BEGIN
  RETURN QUERY
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
  ORDER BY h.account_id, e.seq LIMIT p_limit;
END
$$;
