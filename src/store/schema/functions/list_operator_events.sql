-- A page of the operator log, newest first, after the event at the given place. An empty or NULL filter matches all.
-- Each call is planned with its filters, so that PostgreSQL uses the index of one of them.
CREATE OR REPLACE FUNCTION list_operator_events(
  p_actor_id text, p_method text, p_target text, p_account_id text, p_from timestamptz, p_to timestamptz,
  p_before_micros bigint, p_before_lane smallint, p_before_seq bigint, p_limit integer
) RETURNS TABLE (
    lane smallint, seq bigint, created_at timestamptz, created_micros bigint, actor_id text, actor_name text, method text,
    target text, account_id text, reason text, outcome text, details json, request_id text
  )
  LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path FROM CURRENT
  SET plan_cache_mode = force_custom_plan
  SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off
AS $$
DECLARE
  v_time timestamptz := timestamptz 'epoch' + p_before_micros * interval '1 microsecond';
  v_lane smallint := p_before_lane;
BEGIN
  -- One bound for the page and the filter: PostgreSQL would start at the looser of two.
  IF p_before_micros = 0 OR p_to <= v_time THEN
    v_time := coalesce(p_to, 'infinity');
    v_lane := -1;
  END IF;
  RETURN QUERY
  SELECT e.lane, e.seq, e.created_at, (extract(epoch FROM e.created_at) * 1000000)::bigint, e.actor_id, e.actor_name,
         e.method, e.target, e.account_id, e.reason, e.outcome, e.details, e.request_id
  FROM operator_events e
  WHERE (p_actor_id = '' OR e.actor_id = p_actor_id) AND (p_method = '' OR e.method = p_method)
    AND (p_target = '' OR e.target = p_target)
    AND (p_account_id = '' OR (e.account_id = p_account_id AND e.account_id <> ''))
    AND e.created_at >= coalesce(p_from, '-infinity')
    AND (e.created_at, e.lane, e.seq) < (v_time, v_lane, p_before_seq)
  ORDER BY e.created_at DESC, e.lane DESC, e.seq DESC LIMIT p_limit;
END
$$;
